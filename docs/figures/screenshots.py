"""Screenshots of reports, for docs/report.md, with Debian's chromium.

    python docs/figures/screenshots.py

Desktop, phone and dark of a two-sided estimate, an estimate that cannot be trusted, and a comparison.
"""

import shutil
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import annealz

OUT = Path(__file__).parents[1] / "images"
WIDTH, PHONE = 1000, (390, 844)


def main() -> None:
    browser_file = shutil.which("chromium")
    if browser_file is None:
        raise SystemExit("screenshots need chromium: apt-get install chromium.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_reports(folder)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=browser_file)
            save(shoot(browser, folder / "both.html"), "report-desktop")
            save(shoot(browser, folder / "both.html", scheme="dark", height=1250), "report-dark")
            save(shoot(browser, folder / "bad.html", height=900), "report-unreliable")
            save(shoot(browser, folder / "compare.html", height=1350), "report-compare")
            save(on_a_phone(browser, folder / "both.html"), "report-phone")
            browser.close()


def make_reports(folder: Path) -> None:
    both = annealz.estimate_log_z("mnist-pcd-20", num_steps=2000, two_sided=True)
    both.report(folder / "both.html")
    bad = annealz.estimate_log_z("mnist-cd25-20", base="uniform", num_steps=200, schedule="linear")
    bad.report(folder / "bad.html")
    names = ["mixing", "linear", "sm08", "gms13", "varopt"]
    comparison = annealz.compare_schedules("mnist-pcd-20", schedules=names, num_steps=4000)
    comparison.report(folder / "compare.html")


def shoot(
    browser: Browser, file: Path, *, scheme: str = "light", height: int | None = None
) -> Image.Image:
    """The page as a desktop shows it, all of it or its upper part."""
    size = {"width": WIDTH, "height": height or 900}
    page = browser.new_page(viewport=size, color_scheme=scheme)  # pyright: ignore
    page.goto(file.as_uri())
    shot = page.screenshot(full_page=height is None)
    page.close()
    return Image.open(BytesIO(shot))


def on_a_phone(browser: Browser, file: Path) -> Image.Image:
    """Three screens, side by side."""
    width, height = PHONE
    page = browser.new_page(viewport={"width": width, "height": height}, is_mobile=True)
    page.goto(file.as_uri())
    sheet = Image.new("RGB", (3 * width + 40, height), "#888888")
    for place, top in enumerate((0, height, 3 * height)):
        page.evaluate(f"scrollTo(0, {top})")
        sheet.paste(Image.open(BytesIO(page.screenshot())), (place * (width + 20), 0))
    page.close()
    return sheet


def save(image: Image.Image, name: str) -> None:
    """In its 256 most frequent colours, so that papers and lines keep theirs: a third of the bytes."""
    image = image.convert("RGB")
    counted = sorted(image.getcolors(image.width * image.height) or [], reverse=True)
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in counted[:256] for part in colour])  # pyright: ignore
    few = image.quantize(palette=palette, dither=Image.Dither.NONE)
    few.save(OUT / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
