# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: it needs nothing from anywhere, fits, sorts, shows values, and can be printed."""
import re

import pytest

from rcn_browser import Browser, needs_chromium
from rcn_report_cases import report_cases
from rcn_testing import run

pytestmark = [needs_chromium, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser():
    with Browser() as one:
        yield one


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    data = report_cases(folder, raters=["A", "B & <b>co</b>", "a rater with quite a long name"], counts=(0, 1, 12))
    run("report", "--data", data, "--split", "test", "--pred", f"net={folder / 'levels'}", "--pred", f"plain={folder / 'prob'}",
        "-o", folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def opened(browser, page):
    browser.look()
    browser.open(page)
    return browser


def test_no_error_and_no_request(opened, page):
    console, requests = opened.logs()
    assert console == []
    assert requests and all(url == page.resolve().as_uri() or url.startswith("data:") for url in requests)


def test_nothing_can_be_requested(opened):
    """Even a script in the page could not ask for anything: the policy refuses it."""
    refused = opened.run("""
        const blocked = [];
        document.addEventListener("securitypolicyviolation", e => blocked.push(e.effectiveDirective));
        const image = new Image(); image.src = "http://127.0.0.1:9/x.png"; document.body.append(image);
        const script = document.createElement("script"); script.textContent = "document.title = 'changed'"; document.body.append(script);
        return new Promise(done => setTimeout(() => done([blocked, document.title]), 200));""")
    assert sorted(set(refused[0])) == ["img-src", "script-src-elem"] and refused[1] != "changed"
    opened.logs()


def test_figures_are_visible(opened):
    sizes = opened.run("return [...document.querySelectorAll('svg.fig')].map(f => {const b = f.getBoundingClientRect(); return [b.width, b.height]})")
    assert len(sizes) > 30 and all(width > 80 and height > 40 for width, height in sizes)
    # The shared picture is really painted: a panel without it would be one color.
    pictures = opened.run("return [...document.querySelectorAll('use')].map(u => {const b = u.getBoundingClientRect(); return b.width * b.height})")
    assert len(pictures) > 20 and min(pictures) > 1000
    assert opened.run("return [...document.querySelectorAll('svg.fig')].every(f => f.getAttribute('aria-label').length > 5)")


def column(browser, table, index):
    return browser.run("""return [...document.querySelectorAll("table.sort")[arguments[0]].tBodies[0].rows].map(
        r => r.cells[arguments[1]].firstChild.textContent)""", table, index)


def click_heading(browser, table, index):
    x, y = browser.run("""const b = document.querySelectorAll("table.sort")[arguments[0]].tHead.rows[0].cells[arguments[1]].querySelector("button");
        b.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
        const r = b.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]""", table, index)
    browser.click(x, y)
    return browser.run("return document.querySelectorAll('table.sort')[arguments[0]].tHead.rows[0].cells[arguments[1]].ariaSort", table, index)


def test_tables_sort(opened):
    names = opened.run("return [...document.querySelectorAll('table.sort')].map(t => [...t.tHead.rows[0].cells].map(c => c.textContent))")
    table = next(i for i, heads in enumerate(names) if heads[0] == "Case")
    dice = names[table].index("Mean Dice")
    before = column(opened, table, dice)
    assert click_heading(opened, table, dice) == "ascending"
    assert column(opened, table, dice) == sorted(before, key=float) != before
    assert click_heading(opened, table, dice) == "descending"
    assert column(opened, table, dice) == sorted(before, key=float, reverse=True)
    # Names by their numbers: c9 before c10.
    assert click_heading(opened, table, 0) == "ascending"
    cases = column(opened, table, 0)
    assert cases == sorted(cases, key=lambda name: int(name[1:])) and len(cases) == 12
    assert opened.run("return document.querySelectorAll('th[aria-sort]').length") == 1
    # Rows stay whole.
    rows = opened.run("return [...document.querySelectorAll('table.sort')[arguments[0]].tBodies[0].rows].map(r => [r.cells[0].textContent, r.cells[arguments[1]].textContent])", table, dice)
    opened.run("location.reload()")
    assert dict(map(tuple, rows)) == dict(zip(column(opened, table, 0), column(opened, table, dice)))


def test_not_defined_is_last_both_ways(browser, tmp_path, page):
    text = page.read_text("utf-8")
    value = re.search(r'<td class="number" data-v="[\d.]+">([\d.]+)</td>', text[text.index("Click on a heading"):])
    changed = text.replace(value.group(0), '<td class="number">–</td>')
    (tmp_path / "changed.html").write_text(changed, "utf-8")
    browser.open(tmp_path / "changed.html")
    names = browser.run("return [...document.querySelectorAll('table.sort')].map(t => [...t.tHead.rows[0].cells].map(c => c.textContent))")
    table = next(i for i, heads in enumerate(names) if heads[0] == "Case")
    index = next(i for i in range(len(names[table])) if "–" in column(browser, table, i))
    for _ in range(2):
        click_heading(browser, table, index)
        values = column(browser, table, index)
        assert values[-1] == "–" and "–" not in values[:-values.count("–")]


def test_values_show_under_the_pointer(opened):
    x, y = opened.run("""const f = [...document.querySelectorAll("svg.fig")].find(f => f.getAttribute("aria-label").startsWith("Reliability"));
        f.scrollIntoView({block: "center", behavior: "instant"});
        const t = [...f.querySelectorAll("[data-tip]")].find(e => e.dataset.tip.includes(" %, marked by ")).getBoundingClientRect();
        // The page hears of the scrolling with the next frame, and hides values then.
        return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
          () => done([t.x + t.width / 2, t.y + t.height / 2]))))""")
    assert opened.run("return document.getElementById('tip').hidden")
    opened.move_to(x, y)
    tip = opened.run("const t = document.getElementById('tip'), b = t.getBoundingClientRect(); return [t.textContent, t.hidden, b.left, b.right, b.top]")
    assert re.match(r"predicted [\d.]+ %, marked by [\d.]+ %.* votes$", tip[0]) and not tip[1]
    assert 0 <= tip[2] < tip[3] <= 1200 and tip[4] >= 0
    opened.move_to(1, 1)
    assert opened.run("return document.getElementById('tip').hidden")


@pytest.mark.parametrize("width", [320, 400, 800])
def test_no_sideways_scrolling(browser, page, width):
    browser.look(width=width, height=800)
    browser.open(page)
    assert browser.run("return document.documentElement.scrollWidth") == width
    wide = browser.run("""return [...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll") && !e.closest("svg")
        && e.getBoundingClientRect().right > innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80))""")
    assert wide == []
    # Wide tables scroll in their own box.
    assert width > 400 or browser.run("return [...document.querySelectorAll('.scroll')].some(s => s.scrollWidth > s.clientWidth)")


def luminance(color):
    values = [int(v) / 255 for v in re.findall(r"\d+", color)[:3]]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_light_and_dark_are_readable(browser, page):
    papers = []
    for dark in (False, True):
        browser.look(dark=dark)
        browser.open(page)
        paper = browser.run("return getComputedStyle(document.body).backgroundColor")
        papers.append(luminance(paper))
        for what in ("body", ".note", ".lead", "a", "td small", "figcaption", "th", "dd.words"):
            color = browser.run("return getComputedStyle(document.querySelector(arguments[0])).color", what)
            assert contrast(color, paper) >= 4.5, (dark, what, color)
        fills = browser.run("""return [...new Set([...document.querySelectorAll('svg.fig text:not([fill="#000000"]):not([fill="#ffffff"])')]
            .map(t => getComputedStyle(t).fill))]""")
        assert len(fills) >= 2 and all(contrast(fill, paper) >= 4.5 for fill in fills), (dark, fills)
        banner = browser.run("const s = getComputedStyle(document.querySelector('.banner')); return [s.color, s.backgroundColor]")
        assert contrast(*banner) >= 4.5
    assert papers[0] > 0.9 and papers[1] < 0.05


def test_printing(opened):
    pdf = opened.pdf()
    assert pdf.startswith(b"%PDF") and len(pdf) > 20000
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 40
    opened.look(media="print", dark=True)
    assert luminance(opened.run("return getComputedStyle(document.body).backgroundColor")) > 0.9  # paper is white
    assert opened.run("return [...document.querySelectorAll('figure')].every(f => getComputedStyle(f).breakInside === 'avoid')")


def test_without_scripts_everything_is_there(browser, page):
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(page)
    finally:
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.run("return document.querySelectorAll('th button, #tip').length") == 0
    assert browser.run("return [...document.querySelectorAll('svg.fig title')].some(t => t.textContent.includes(' %, marked by '))")
