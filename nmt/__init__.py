"""Attention-based neural machine translation after Luong et al. (2015) and Bahdanau et al. (2014)."""
