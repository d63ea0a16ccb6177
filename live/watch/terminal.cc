// SPDX-License-Identifier: MIT
// See terminal.h. The only file that includes ncurses, whose header defines macros with common names.
#define NCURSES_WIDECHAR 1
#define NCURSES_NOMACROS 1
#include "terminal.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <curses.h>
#include <poll.h>
#include <term.h>
#include <unistd.h>

#include "terminfo.h"

#undef columns
#undef lines

namespace forktail::live::watch
{

namespace
{

constexpr short kAlarmPair = 1, kFirstCause = 2;
constexpr int kEscapeMs = 25; // how long after ESC the rest of a key code may arrive

// Whether a terminal that the host does not know is one that understands xterm's sequences.
bool LikeXterm(const std::string &name)
{
	for (const char *family : {"xterm", "screen", "tmux", "linux", "rxvt", "alacritty", "foot", "ghostty",
				   "gnome", "konsole", "putty", "st-", "vte", "wezterm"})
		if (name.starts_with(family))
			return true;
	return false;
}

// Descriptions of terminals are files, which a container or a host far from the terminal may lack. Finds that
// of `*name`, or makes `*name` one that is part of this program.
bool FindTerminal(const char **name)
{
	int found = 0;
	if (setupterm(*name, STDOUT_FILENO, &found) == OK)
		return true;
	if (!kTerminfo[0] || !*name || !LikeXterm(*name))
		return false;
	setenv("TERMINFO", kTerminfo, 1);
	*name = kTerminfoName;
	return setupterm(*name, STDOUT_FILENO, &found) == OK;
}

int Hex(const char *digits)
{
	char two[3] = {digits[0], digits[1], 0};
	return static_cast<int>(strtol(two, nullptr, 16));
}

// The color of xterm's 6 x 6 x 6 cube nearest to "#rrggbb".
short InCube(const char *rgb)
{
	static const int levels[] = {0, 95, 135, 175, 215, 255};
	int colour = 16;
	for (int part = 0, scale = 36; part < 3; part++, scale /= 6) {
		const int value = Hex(rgb + 1 + 2 * part);
		int best = 0;
		for (int i = 1; i < 6; i++)
			if (abs(levels[i] - value) < abs(levels[best] - value))
				best = i;
		colour += scale * best;
	}
	return static_cast<short>(colour);
}

// One of the eight basic colors, by family, as in explain's text.
short OfEight(const analysis::CauseInfo &info)
{
	switch (info.family) {
	case analysis::Family::Memory:
		return COLOR_RED;
	case analysis::Family::Files:
		return COLOR_BLUE;
	case analysis::Family::Cpu:
		return COLOR_YELLOW;
	case analysis::Family::Interrupts:
		return COLOR_MAGENTA;
	default:
		return COLOR_CYAN;
	}
}

// COLORFGBG is "15;0": text and background.
bool LightBackground()
{
	const char *text = getenv("COLORFGBG");
	const char *last = text ? strrchr(text, ';') : nullptr;
	const int background = last ? atoi(last + 1) : 0;
	return background == 7 || background == 15;
}

// Replaces characters that the terminal's locale lacks.
std::string Ascii(const std::string &text)
{
	std::string out;
	for (unsigned char c : text)
		if (c < 0x80)
			out += static_cast<char>(c);
		else if (c >= 0xc0)
			out += '?';
	return out;
}

Key KeyOf(int code)
{
	static const struct {
		int code;
		Key key;
	} keys[] = {
	    {'q', Key::Quit},	     {' ', Key::Freeze},	 {'p', Key::Freeze},
	    {KEY_LEFT, Key::Back},   {'h', Key::Back},		 {KEY_RIGHT, Key::On},
	    {'l', Key::On},	     {KEY_PPAGE, Key::PageBack}, {KEY_NPAGE, Key::PageOn},
	    {KEY_HOME, Key::First},  {KEY_END, Key::Live},	 {'w', Key::Worst},
	    {'\t', Key::NextServer}, {'e', Key::Explain},	 {'\r', Key::Explain},
	    {'\n', Key::Explain},    {KEY_ENTER, Key::Explain},	 {'s', Key::Snapshot},
	    {'c', Key::Clients},     {'?', Key::Help},
	};
	for (const auto &k : keys)
		if (k.code == code)
			return k.key;
	return Key::Other;
}

} // namespace

Terminal::~Terminal()
{
	if (!screen_)
		return;
	endwin();
	delscreen(static_cast<SCREEN *>(screen_));
}

bool Terminal::Open(bool colour, bool utf8, std::string *error)
{
	const char *const asked = getenv("TERM"), *name = asked;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		*error = "watch needs a terminal. Use --once to print the figures of one second.";
		return false;
	}
	if (!FindTerminal(&name) || !tigetstr("cup") || tigetstr("cup") == reinterpret_cast<char *>(-1)) {
		*error = "the terminal '" + std::string(asked ? asked : "") +
			 "' (TERM) is unknown or cannot move its cursor. Use --once to print the figures of "
			 "one second.";
		return false;
	}
	screen_ = newterm(name, stdout, stdin);
	if (!screen_) {
		*error = "the terminal '" + std::string(asked ? asked : "") + "' (TERM) cannot be used";
		return false;
	}
	utf8_ = utf8;
	colour_ = colour && has_colors();
	set_escdelay(kEscapeMs);
	cbreak();
	noecho();
	nonl();
	curs_set(0);
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	if (colour_)
		MakeColours();
	return true;
}

void Terminal::MakeColours()
{
	start_color();
	use_default_colors();
	const bool light = LightBackground();
	init_pair(kAlarmPair, COLOR_RED, -1);
	for (short c = 0; c < analysis::kTimelineCauses && kFirstCause + c < COLOR_PAIRS; c++) {
		const analysis::CauseInfo &info = analysis::kCauseTable[c];
		init_pair(static_cast<short>(kFirstCause + c),
			  COLORS >= 256 ? InCube(light ? info.light : info.dark) : OfEight(info), -1);
	}
}

int Terminal::AttributesOf(const Words &words) const
{
	switch (words.look) {
	case Look::Strong:
		return A_BOLD;
	case Look::Dim:
		return A_DIM;
	case Look::Alarm:
		return A_BOLD | (colour_ ? COLOR_PAIR(kAlarmPair) : 0);
	case Look::Tinted:
		return colour_ ? COLOR_PAIR(kFirstCause + analysis::Index(words.cause)) : 0;
	case Look::Chosen:
	case Look::Reverse:
		return A_REVERSE;
	case Look::Plain:
		break;
	}
	return A_NORMAL;
}

size_t Terminal::columns() const
{
	return static_cast<size_t>(std::max(getmaxx(stdscr), 1));
}
size_t Terminal::rows() const
{
	return static_cast<size_t>(std::max(getmaxy(stdscr), 1));
}

void Terminal::Draw(const std::vector<Line> &lines)
{
	erase();
	for (size_t row = 0; row < lines.size() && row < rows(); row++) {
		move(static_cast<int>(row), 0);
		for (const Words &words : lines[row]) {
			attrset(static_cast<chtype>(AttributesOf(words)));
			addstr((utf8_ ? words.text : Ascii(words.text)).c_str());
		}
	}
	attrset(A_NORMAL);
	refresh();
}

Key Terminal::Wait(double seconds, bool *gone)
{
	int code = getch();
	if (code == ERR && seconds > 0) {
		struct pollfd in = {STDIN_FILENO, POLLIN, 0};
		// A signal, such as a resize, also ends the wait.
		if (poll(&in, 1, static_cast<int>(seconds * 1000)) > 0 && (in.revents & (POLLHUP | POLLERR)))
			*gone = true;
		code = getch();
		// Readable without data means the end of input.
		if (code == ERR && (in.revents & POLLIN) && !isatty(STDIN_FILENO))
			*gone = true;
	}
	if (code == ERR)
		return Key::None;
	if (code == KEY_RESIZE)
		return Key::None;
	return KeyOf(code);
}

void Terminal::Lend()
{
	endwin();
}
void Terminal::TakeBack()
{
	clearok(stdscr, TRUE);
	refresh();
}

} // namespace forktail::live::watch
