"""docs/images/terminal.svg: `annealz estimate` in a terminal, half-way and done, from a run of its own.

The command runs in a pseudo terminal. What it drew at about half of its annealing, and what stood on the
screen when it was done, are set one above the other.
"""

import fcntl
import io
import os
import pty
import re
import struct
import sys
import termios
import time
from pathlib import Path

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

ARGUMENTS = ["estimate"]
COLUMNS, ROWS = 84, 24
OUT = Path(__file__).parents[1] / "images" / "terminal.svg"
SHOWN_AT = 85  # per cent
# rich's own page, without fonts from the network
PAGE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture(screen: pyte.Screen) -> list[Text]:
    """What stands on the screen, with its colours."""
    lines = []
    for row in range(screen.lines):
        line = Text()
        for column in range(screen.columns):
            cell = screen.buffer[row][column]
            color = None if cell.fg == "default" else cell.fg.replace("brown", "yellow")
            line.append(cell.data, Style(color=color, bold=cell.bold))
        line.rstrip()
        lines.append(line)
    while lines and not lines[-1].plain:
        lines.pop()
    return lines


def run() -> tuple[list[Text], list[Text], float]:
    """The picture half-way, that at the end, and the seconds between them."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    process, terminal = pty.fork()
    if process == 0:
        time.sleep(0.2)  # until the terminal has its size
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
        for name in ("NO_COLOR", "COLUMNS", "LINES"):
            environment.pop(name, None)
        os.execve(sys.executable, [sys.executable, "-m", "annealz", *ARGUMENTS], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    half_way: list[Text] = []
    seen = time.monotonic()
    while True:
        try:
            sent = os.read(terminal, 65536)
        except OSError:
            break
        if not sent:
            break
        stream.feed(sent)
        text = "\n".join(screen.display)
        share = re.search(r"annealing .*?(\d+) %", text)
        if not half_way and share and int(share[1]) >= SHOWN_AT and "ESS" in text:
            half_way, seen = picture(screen), time.monotonic()
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    if status != 0 or not half_way:
        raise SystemExit(f"the run ended with status {status}, or showed no progress")
    return half_way, picture(screen), time.monotonic() - seen


def main() -> None:
    half_way, done, seconds = run()
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), highlight=False)
    console.print(Text(f"$ annealz {' '.join(ARGUMENTS)}", "bold"))
    for line in half_way:
        console.print(line)
    console.print(Text(f"\n… {seconds:.0f} s later, in the same lines …\n", "dim italic"))
    for line in done:
        console.print(line)
    OUT.write_text(console.export_svg(title="annealz", code_format=PAGE, unique_id="annealz"))
    print(OUT)


if __name__ == "__main__":
    main()
