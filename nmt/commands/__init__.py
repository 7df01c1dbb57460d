"""What the commands of `python -m nmt` are: each file a group, each command thin over functions of the package."""
