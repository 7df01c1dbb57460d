"""The report in a real browser: no errors, pictures there, explorer and curves answer to pointer and keyboard."""

import json
import re
import shutil
import subprocess

import pytest

from nmt.attention_file import write_attention
from tests.workflow.test_report import WEIGHTS, build, parts  # noqa: F401
from workflow.scripts import explorer

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=3000",
    "--window-size=500,900",
]
PROBE = """
<pre id="probe"></pre><script>
const seen = {};
const words = (side) => [...document.querySelectorAll(`#explorer-${side} button`)];
const says = () => document.getElementById("explorer-says").textContent;
const shown = (side) => words(side).map((word) => word.lastChild.textContent);
const key = (name) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
seen.fragment = [says(), shown("source"), document.activeElement.textContent];
words("target")[0].dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
seen.hover = [says(), shown("source")];
words("source")[2].focus();
seen.focus = [says(), shown("target"), words("target").map((word) => word.className)];
key("ArrowLeft");
seen.left = says();
key("ArrowDown");
seen.down = says();
const curve = document.querySelector(".keys button");
curve.focus();
seen.curve = document.getElementById("curves-says").textContent;
curve.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true }));
seen.earlier = document.getElementById("curves-says").textContent;
seen.anchors = [...document.querySelectorAll("a")].map((a) => a.hash)
  .filter((hash) => !document.getElementById(hash.slice(1)));
seen.pictures = [...document.querySelectorAll("main .picture svg, #curves-chart, #stations")]
  .map((svg) => svg.getBoundingClientRect()).map((box) => box.width > 200 && box.height > 90);
seen.fetched = performance.getEntriesByType("resource").map((entry) => entry.name)
  .filter((name) => !name.startsWith("data:"));
seen.colours = [...document.querySelectorAll("body, main .picture svg, main .picture svg text, #curves-chart text")]
  .map((element) => [element.tagName, getComputedStyle(element)[element.tagName === "text" ? "fill" : "color"]]);
seen.page = getComputedStyle(document.body).backgroundColor;
seen.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
document.getElementById("probe").textContent = JSON.stringify(seen);
</script>
"""


@pytest.fixture(scope="module")
def address(parts):  # noqa: F811
    """A report with all that answers to pointer and keyboard, and the probe in it."""
    if BROWSER is None:
        pytest.skip("no chromium here; Debian and Ubuntu: apt install chromium")
    (parts / "source").write_text("a b c\nx\na b </script>\n")
    (parts / "target").write_text("A <unk>\nX\nB C\n")
    (parts / "gold.talp").write_text("1-1 3p2\n\n1-2\n")
    write_attention(parts / "att.npz", [WEIGHTS, WEIGHTS[:2, :1], WEIGHTS])
    explorer.main([f"sys tem={parts / 'att.npz'}"], parts / "source", parts / "gold.json",
                  target=parts / "target", gold=parts / "gold.talp")  # fmt: skip
    text, _ = build(
        parts,
        exhibit=[parts / f"{name}.json" for name in ("table1", "figure6", "samples")],
        explorer=[parts / "gold.json"],
        curve=[f"base={parts / 'curve.jsonl'}"],
        benchmark=parts / "benchmarks",
    )
    probed = parts / "probed.html"
    probed.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    return f"{probed.as_uri()}#explore=gold:sys%20tem:1:2"


def look(address, profile, *flags):
    """What the probe saw, and the browser's messages."""
    command = [BROWSER, *FLAGS, *flags, f"--user-data-dir={profile}", "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="probe">(\{.*?\})</pre>', done.stdout, re.DOTALL)
    assert found, f"the probe did not run to its end: {done.stderr[-2000:]}"
    seen = json.loads(found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    return seen | {"messages": [line for line in done.stderr.splitlines() if "CONSOLE" in line]}


@pytest.fixture(scope="module")
def page(address, parts):  # noqa: F811
    return look(address, parts / "profile")


def brightness(colour):
    """From 0 to 1, of `rgb(r, g, b)`."""
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return (0.3 * red + 0.6 * green + 0.1 * blue) / 255


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_text_and_figures_are_bright_on_dark_and_dark_on_bright(address, parts, page, scheme):  # noqa: F811
    seen = page if scheme == "light" else look(address, parts / "profile", "--blink-settings=preferredColorScheme=0")
    inks = [brightness(colour) for _, colour in seen["colours"]]
    assert {tag for tag, _ in seen["colours"]} == {"BODY", "svg", "text"}
    if scheme == "dark":
        assert brightness(seen["page"]) < 0.2 and min(inks) > 0.6
    else:
        assert brightness(seen["page"]) > 0.9 and max(inks) < 0.45


def test_nothing_is_missing_or_fetched(page):
    assert page["messages"] == []
    assert page["anchors"] == [] and page["fetched"] == []
    assert page["pictures"] == [True, True, True]
    assert page["overflow"] == 0, "the page scrolls sideways on a phone"


def test_address_chooses_a_word(page):
    assert page["fragment"] == ["<unk> attends to b 1.00.", ["", "100", ""], "<unk>"]


def test_pointing_at_a_word_shows_its_weights(page):
    assert page["hover"] == ["A attends to a 0.90, b 0.10.", ["90", "10", ""]]


def test_keyboard_reaches_the_words_of_both_sides(page):
    says, weights, classes = page["focus"]
    assert says == "c is attended to by </s> 0.51." and weights == ["", "", "51"]  # 0.5 in steps of 1/63
    assert classes == ["", "possible", ""]
    assert page["left"] == "b is attended to by <unk> 1.00, </s> 0.25, A 0.10."
    assert page["down"] == "<unk> attends to b 1.00."


def test_curves_tell_their_points(page):
    assert page["curve"] == "base: perplexity 7.50 after 1,200 mini-batches"
    assert page["earlier"] == "base: perplexity 8.50 after 600 mini-batches"
