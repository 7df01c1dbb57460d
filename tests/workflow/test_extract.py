"""Text out of archives of the inner layout of the real ones, and nothing but text."""

import gzip
import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from workflow.catalogue import corpus_texts
from workflow.scripts.extract import extract, main, turn_links

ROOT = Path(__file__).parents[2]
SGM = """<srcset setid="newstest2013" srclang="any">
<doc docid="a" genre="news">
<hl>
<seg id="1">A &amp; B said  "&quot;no&quot;" </seg>
</hl>
<p>
<seg id="2">AT&T &lt;b&gt; &amp;amp;</seg>
<seg id="3"></seg>
</p></doc></srcset>
"""


def make_tar(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            information = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                information.size = len(content)
                archive.addfile(information, io.BytesIO(content))
            else:
                information.type, information.linkname = tarfile.SYMTYPE, content
                archive.addfile(information)


def take(tmp_path, entry, languages=("en", "de")):
    extract(corpus_texts("c", entry, languages), tmp_path, tmp_path / "raw", "c")
    return [(tmp_path / "raw" / f"c.{language}").read_bytes() for language in languages]


def test_members_of_a_tar_either_order_of_the_pair(tmp_path):
    make_tar(tmp_path / "a.tgz", {"t/x.de": "Häuser\u2028!\n\n".encode(), "./t/x.en": b"houses!\r\n\nend"})
    entry = {"archive": "a.tgz", "members": {"de-en": {"de": "t/x.de", "en": "t/x.en"}}}
    assert take(tmp_path, entry) == [b"houses!\r\n\nend\n", "Häuser\u2028!\n\n".encode()]
    with pytest.raises(ValueError, match="c: expected the pair en-fr, found de-en"):
        take(tmp_path, entry, ("en", "fr"))


def test_several_members_are_joined_in_the_order_named(tmp_path):
    members = {"2.en": b"two", "1.en": b"one\n", "1.de": b"eins\n"}
    make_tar(tmp_path / "a.tar", members, "w")
    entry = {"archive": "a.tar", "members": {"en-de": {"en": ["1.en", "2.en"], "de": "1.de"}}}
    assert take(tmp_path, entry) == [b"one\ntwo\n", b"eins\n"]


def test_gzipped_members_and_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x.en.gz", gzip.compress(b"a\nb\n"))
        archive.writestr("x.de", "ä\nö\n")
    entry = {"archive": "a.zip", "members": {"en-de": {"en": "x.en.gz", "de": "x.de"}}}
    assert take(tmp_path, entry) == [b"a\nb\n", "ä\nö\n".encode()]


def test_segments_of_sgm_with_entities_undone_once(tmp_path):
    make_tar(tmp_path / "a.tgz", {"test/n.en.sgm": SGM.encode(), "test/n.de.sgm": SGM.encode()})
    entry = {"archive": "a.tgz", "lines": 3, "members": {"en-de": {"en": "test/n.en.sgm", "de": "test/n.de.sgm"}}}
    assert take(tmp_path, entry)[0].decode().split("\n") == ['A & B said ""no""', "AT&T <b> &amp;", "", ""]


def test_latin_1_and_the_line_beyond_the_last(tmp_path):
    make_tar(tmp_path / "a.tgz", {"en": b"a\nb\n\n", "de": "ä\nß\n\n".encode("latin-1")})
    entry = {"archive": "a.tgz", "encoding": "latin-1", "lines": 2, "members": {"de-en": {"de": "de", "en": "en"}}}
    assert take(tmp_path, entry) == [b"a\nb\n", "ä\nß\n".encode()]
    with pytest.raises(ValueError, match=r"a\.tgz en: found 3 lines, expected 1"):
        take(tmp_path, entry | {"lines": 1})
    with pytest.raises(ValueError, match="not utf-16"):
        take(tmp_path, entry | {"encoding": "utf-16"})


@pytest.mark.parametrize("member", ["../x.en", "/etc/x.en", "t/../../x.en"])
def test_a_member_outside_the_archive_is_refused(tmp_path, member):
    make_tar(tmp_path / "a.tgz", {member: b"x\n", "x.de": b"x\n"})
    with pytest.raises(ValueError, match="leads out of its archive"):
        take(tmp_path, {"archive": "a.tgz", "members": {"en-de": {"en": member, "de": "x.de"}}})


def test_links_missing_members_and_damage_are_named(tmp_path):
    make_tar(tmp_path / "a.tgz", {"t/x.en": "/etc/passwd", "t/x.de": b"x\n" * 5000})
    entry = {"archive": "a.tgz", "members": {"en-de": {"en": "t/x.en", "de": "t/x.de"}}}
    with pytest.raises(ValueError, match=r"expected t/x\.en to be a file, found a link"):
        take(tmp_path, entry)
    with pytest.raises(ValueError, match=r"expected the member t/x\.e, found none; near it are .*t/x\.en"):
        take(tmp_path, {"archive": "a.tgz", "members": {"en-de": {"en": "t/x.e", "de": "t/x.de"}}})
    path = tmp_path / "a.tgz"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=r"a\.tgz: damaged archive"):
        take(tmp_path, entry)
    assert list((tmp_path / "raw").iterdir()) == []


def test_gold_links_are_turned_to_the_pairs_order(tmp_path):
    make_tar(tmp_path / "a.tgz", {"de": b"a b\nc\n", "en": b"A B\nC\n", "talp": b"1-2 2p1\n\n"})
    entry = {"licence": "-", "archive": "a.tgz", "sha256": "0", "members": {"de-en": {"de": "de", "en": "en"}}}
    entry |= {"lines": 2, "alignment": {"member": "talp", "first": "de"}}
    (tmp_path / "datasets.yaml").write_text(yaml.safe_dump({"gold": entry}))
    places = {"dataset": "gold", "datasets": tmp_path / "datasets.yaml", "downloads": tmp_path}
    for languages, expected in ((["en", "de"], "2-1 1p2\n\n"), (["de", "en"], "1-2 2p1\n\n")):
        main(name="g", folder=tmp_path / "raw", language=languages, **places)
        assert (tmp_path / "raw" / f"g.{'-'.join(languages)}.talp").read_text() == expected
    (tmp_path / "bad.talp").write_text("1-1\n1-x\n")
    with pytest.raises(ValueError, match=r"bad\.talp, line 2: expected links such as 3-4 or 3p4, found '1-x'"):
        turn_links(tmp_path / "bad.talp", tmp_path / "out", False)


def test_ones_own_files_by_hand(tmp_path):
    (tmp_path / "my.en.gz").write_bytes(gzip.compress(b"a\nb\n"))
    (tmp_path / "my.de").write_text("x\ny\n")
    command = [sys.executable, "workflow/scripts/extract.py", "--name", "mine", "--folder", tmp_path / "raw"]
    command += ["--language", "en", "--language", "de", "--file", f"en={tmp_path / 'my.en.gz'}"]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    failed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert failed.returncode == 1
    assert failed.stderr == "error: mine: no file given for de; add --file de=PATH\n"
    command += ["--file", f"de={tmp_path / 'my.de'}"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    assert (tmp_path / "raw" / "mine.en").read_text() == "a\nb\n"
    assert (tmp_path / "raw" / "mine.de").read_text() == "x\ny\n"
