// SPDX-License-Identifier: MIT
// Charts for gnuplot. Ranges and tics are chosen here rather than there: tics can then be written as tables
// write figures, and one point, or none on an axis, is no special case for gnuplot.
#include "gnuplot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <limits>

#include "format.h"
#include "lab/run/files.h"
#include "markup.h"

namespace forktail::lab
{
namespace
{

// Dark enough for white, told apart by the colour blind when neighbours; as the run page's.
const char *const kColours[] = {"#1a56c4", "#d9730d", "#0f766e", "#b01e68",
				"#7c3aed", "#8a6d00", "#52606d", "#2f9e44"};
constexpr int kPoints[] = {7, 5, 9, 11, 13, 7, 5, 9};
constexpr size_t kColourCount = std::size(kColours);
constexpr size_t kWidth = 640, kHeight = 360; // without the series' titles below
constexpr size_t kKeyRowHeight = 18, kKeySampleWidth = 60;
constexpr size_t kAxisHeight = 66; // of the x axis' tics and title
// About what is left of the width for the x axis, and what a character of its labels takes.
constexpr double kAxisWidth = 540, kCharacterWidth = 7;
constexpr double kBarsWidth = 0.8; // of a place's
constexpr double kDrawSeconds = 60;

std::string Number(double number)
{
	char text[32];
	snprintf(text, sizeof text, "%.10g", number);
	return text;
}

// gnuplot takes everything but ' as it is between such quotes.
std::string Quoted(const std::string &text)
{
	std::string quoted = "'";
	for (char c : text)
		if (c == '\'')
			quoted += "''";
		else
			quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
	return quoted + "'";
}

struct Range {
	double least = std::numeric_limits<double>::infinity();
	double most = -std::numeric_limits<double>::infinity();
	void Add(double value)
	{
		least = std::min(least, value);
		most = std::max(most, value);
	}
};

struct Tic {
	double at;
	std::string label;
};

std::string TicsText(const std::vector<Tic> &tics)
{
	std::string text;
	for (const Tic &tic : tics)
		text += (text.empty() ? "" : ", ") + Quoted(tic.label) + " " + Number(tic.at);
	return "(" + text + ")";
}

int DecimalsOfStep(double step)
{
	return std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
}

// As FormatFigure has it, but of a number that is in its unit already.
std::string TicLabel(double at, double step, Format format)
{
	return format == Format::kBytes ? FormatFigure(at, format) : FormatDecimals(at, DecimalsOfStep(step));
}

// 1, 2 or 5 times a power of ten: about five steps in the range.
double StepFor(double width)
{
	double power = std::pow(10, std::floor(std::log10(width / 5)));
	for (double factor : {1.0, 2.0, 5.0})
		if (width / (power * factor) <= 6)
			return power * factor;
	return power * 10;
}

std::vector<Tic> LinearTics(Range *range, Format format)
{
	range->Add(0);
	if (range->least == range->most)
		range->Add(1);
	double step = StepFor(range->most - range->least);
	double first = std::floor(range->least / step), last = std::ceil(range->most / step);
	range->least = first * step;
	range->most = last * step;
	std::vector<Tic> tics;
	for (double i = first; i <= last; i++)
		tics.push_back({i * step, TicLabel(i * step, step, format)});
	return tics;
}

std::vector<Tic> LogTics(Range *range, Format format)
{
	double first = std::floor(std::log10(range->least) + 1e-9);
	double last = std::ceil(std::log10(range->most) - 1e-9);
	if (first == last)
		last++;
	range->least = std::pow(10, first);
	range->most = std::pow(10, last);
	// A label for each decade while they fit.
	double every = std::ceil((last - first) / 8);
	std::vector<Tic> tics;
	for (double decade = first; decade <= last; decade++) {
		double power = std::pow(10, decade);
		if (std::fmod(decade - first, every) == 0)
			tics.push_back({power, TicLabel(power, power, format)});
		for (double factor : {2.0, 5.0})
			if (last - first <= 2 && decade < last)
				tics.push_back({power * factor, TicLabel(power * factor, power, format)});
	}
	return tics;
}

std::vector<Tic> YTics(const MadeChart &chart, Range *range)
{
	for (const Series &series : chart.series)
		for (const Dot &dot : series.dots)
			for (double y : {dot.y, dot.least.value_or(dot.y), dot.most.value_or(dot.y)})
				range->Add(y);
	return chart.log_y ? LogTics(range, chart.format) : LinearTics(range, chart.format);
}

// The values that there are, as far as their labels fit beside each other.
std::vector<Tic> XTics(const MadeChart &chart, Range *range)
{
	std::vector<double> values;
	for (const Series &series : chart.series)
		for (const Dot &dot : series.dots) {
			range->Add(dot.x);
			values.push_back(dot.x);
		}
	std::sort(values.begin(), values.end());
	values.erase(std::unique(values.begin(), values.end()), values.end());
	auto place = [&](double x) { return chart.log_x ? std::log10(x) : x; };
	double left = place(range->least), width = place(range->most) - left;
	std::vector<Tic> tics;
	double free = -std::numeric_limits<double>::infinity();
	for (double x : values) {
		std::string label = FormatPublished(x, Format::kNumber);
		double half = (static_cast<double>(label.size()) + 1) * kCharacterWidth / 2;
		double at = width > 0 ? (place(x) - left) / width * kAxisWidth : 0;
		if (at - half < free)
			continue;
		free = at + half;
		tics.push_back({x, label});
	}
	double margin = width > 0 ? width * 0.03 : 1;
	if (chart.log_x)
		*range = {std::pow(10, left - margin), std::pow(10, left + width + margin)};
	else
		*range = {left - margin, left + width + margin};
	return tics;
}

std::string AxisText(const std::string &name, const Range &range, const std::vector<Tic> &tics, bool log)
{
	return (log ? "set logscale " + name + "\n" : "") + "set " + name + "range [" + Number(range.least) +
	       ":" + Number(range.most) + "]\nset " + name + "tics " + TicsText(tics) + "\n";
}

// How the series' titles are arranged below the plot, which stays as high if they need several rows.
struct Key {
	size_t columns = 1, rows = 1;
	size_t Height() const { return rows * kKeyRowHeight; }
};

Key KeyOf(const MadeChart &chart)
{
	size_t longest = 0, count = 0;
	for (const Series &series : chart.series) {
		longest = std::max(longest, series.title.size());
		count += !series.dots.empty();
	}
	size_t width = kKeySampleWidth + longest * static_cast<size_t>(kCharacterWidth);
	Key key;
	key.columns =
	    std::clamp<size_t>(static_cast<size_t>(kAxisWidth) / width, 1, std::max<size_t>(count, 1));
	key.rows = (count + key.columns - 1) / key.columns;
	return key;
}

bool HasRanges(const Series &series)
{
	return std::any_of(series.dots.begin(), series.dots.end(),
			   [](const Dot &dot) { return dot.least && dot.most; });
}

// What is drawn: a block of data, and how.
struct Drawing {
	std::string data, plot;

	void Add(const Series &series, double shift, const std::string &how)
	{
		std::string block = "$data" + std::to_string(count++);
		data += block + " << end_of_data\n";
		for (const Dot &dot : series.dots)
			data += Number(dot.x + shift) + " " + Number(dot.y) + " " +
				Number(dot.least.value_or(dot.y)) + " " + Number(dot.most.value_or(dot.y)) +
				"\n";
		data += "end_of_data\n";
		plot += (plot.empty() ? "plot " : ", \\\n     ") + block + " " + how;
	}
	int count = 0;
};

void AddLines(const MadeChart &chart, Drawing *drawing)
{
	size_t colour = kColourCount - 1;
	for (const Series &series : chart.series) {
		colour = series.published ? colour : (colour + 1) % kColourCount;
		if (series.dots.empty())
			continue;
		bool ranges = HasRanges(series);
		std::string how =
		    std::string(ranges ? "using 1:2:3:4 with yerrorlines" : "using 1:2 with linespoints") +
		    " lc rgb " + Quoted(kColours[colour]) + " lw 1.6 ps 0.6 pt " +
		    std::to_string(series.published ? 6 : kPoints[colour]) +
		    (series.published ? " dt (6,5)" : " dt 1") + " title " + Quoted(series.title);
		drawing->Add(series, 0, how);
	}
}

void AddBars(const MadeChart &chart, Drawing *drawing)
{
	double bars = 0, bar = 0;
	for (const Series &series : chart.series)
		bars += !series.dots.empty();
	double width = kBarsWidth / bars;
	size_t colour = kColourCount - 1;
	for (const Series &series : chart.series) {
		colour = series.published ? colour : (colour + 1) % kColourCount;
		if (series.dots.empty())
			continue;
		double shift = (bar++ + 0.5) * width - kBarsWidth / 2;
		std::string line = " lc rgb " + Quoted(kColours[colour]);
		drawing->Add(series, shift,
			     "using 1:2:(" + Number(width * 0.92) + ") with boxes" + line +
				 (series.published ? " dt (6,5) fill solid 0.15" : " fill solid 0.85") +
				 " border" + line + " title " + Quoted(series.title));
		if (HasRanges(series))
			drawing->Add(series, shift,
				     "using 1:2:3:4 with yerrorbars ps 0 lc rgb '#1b2330' notitle");
	}
}

// Removes every `open` ... `close`, both included.
void Cut(std::string *text, const std::string &open, const std::string &close)
{
	for (size_t at = 0; (at = text->find(open, at)) != std::string::npos;) {
		size_t end = text->find(close, at);
		if (end == std::string::npos)
			return;
		text->erase(at, end + close.size() - at);
	}
}

// gnuplot names its version, titles each line by a number, and calls the same things the same in each chart,
// so that two of them in one page would take each other's.
std::string Tidy(std::string svg, const std::string &title, const std::string &prefix)
{
	Cut(&svg, "<desc>", "</desc>\n");
	Cut(&svg, "<title>gnuplot_plot", "</title>");
	Cut(&svg, "<title>", "</title>\n");
	std::string tidy;
	bool tag = false;
	for (size_t i = 0; i < svg.size(); i++) {
		tag = svg[i] == '<' || (tag && svg[i] != '>'); // of texts gnuplot escapes both
		tidy += svg[i];
		for (const char *before : {" id='", " id=\"", "href='#", "url(#"}) {
			std::string word = before;
			if (tag && tidy.size() >= word.size() &&
			    tidy.compare(tidy.size() - word.size(), word.size(), word) == 0)
				tidy += prefix;
		}
	}
	size_t start = tidy.find("<svg");
	size_t inside = start == std::string::npos ? start : tidy.find('>', start);
	if (inside != std::string::npos) {
		tidy.insert(inside + 1, "\n<title>" + EscapeHtml(title) + "</title>");
		tidy.insert(start + 4, " role=\"img\"");
	}
	return tidy;
}

} // namespace

std::string GnuplotScript(const MadeChart &chart, const std::string &output)
{
	bool bars = !chart.places.empty();
	Key key = KeyOf(chart);
	size_t height = kHeight + key.Height();
	auto screen = [&](size_t pixels) {
		return "screen " + Number(static_cast<double>(pixels) / static_cast<double>(height));
	};
	Range x, y;
	std::vector<Tic> y_tics = YTics(chart, &y), x_tics;
	if (bars) {
		x = {-0.5, static_cast<double>(chart.places.size()) - 0.5};
		for (size_t i = 0; i < chart.places.size(); i++)
			x_tics.push_back({static_cast<double>(i), chart.places[i]});
	} else {
		x_tics = XTics(chart, &x);
	}
	Drawing drawing;
	if (bars)
		AddBars(chart, &drawing);
	else
		AddLines(chart, &drawing);
	return "reset\nset encoding utf8\n"
	       "set terminal svg size " +
	       std::to_string(kWidth) + "," + std::to_string(height) +
	       " noenhanced font 'sans-serif,12' background '#ffffff'\n"
	       "set output " +
	       Quoted(output) +
	       "\n"
	       "set border 3 lc rgb '#7b8694'\n"
	       "set grid ytics lc rgb '#e2e6ea' lt 1 lw 0.7\n"
	       "set tics nomirror out scale 0.6 textcolor rgb '#3c4654'\nset xtics offset 0,0.3\n"
	       "set key at screen 0.53, " +
	       screen(6) + " center bottom horizontal maxcols " + std::to_string(key.columns) +
	       " Left reverse samplen 2.5 textcolor rgb '#1b2330'\nset bmargin at " +
	       screen(kAxisHeight + key.Height()) +
	       "\n"
	       "set title " +
	       Quoted(chart.title) + " font 'sans-serif,14' textcolor rgb '#1b2330'\nset xlabel " +
	       Quoted(chart.x_title) + " offset 0,0.6 textcolor rgb '#3c4654'\nset ylabel " +
	       Quoted(chart.y_title) + " textcolor rgb '#3c4654'\n" + AxisText("x", x, x_tics, chart.log_x) +
	       AxisText("y", y, y_tics, chart.log_y) + drawing.data + drawing.plot + "\n";
}

bool DrawCharts(Session *session, const std::vector<MadeChart> &charts, std::vector<DrawnChart> *drawn,
		std::string *note, std::string *error)
{
	drawn->clear();
	note->clear();
	if (charts.empty())
		return true;
	std::string directory;
	if (!MakeTempDirectory(session, &directory, error))
		return false;
	auto output = [&](size_t i) { return directory + "/" + std::to_string(i + 1) + ".svg"; };
	Command command;
	command.name = "gnuplot";
	command.argv = {"gnuplot", "-d", directory + "/script"}; // -d: without anybody's settings
	command.output = "/dev/null";
	std::ofstream script(command.argv[2]);
	for (size_t i = 0; i < charts.size(); i++)
		script << GnuplotScript(charts[i], output(i));
	script << "unset output\n";
	script.close();
	std::string reason;
	Child *child = script ? Start(session, command, &reason) : nullptr;
	if (!script)
		reason = "cannot write " + command.argv[2];
	if (!child || !WaitForEnd(session, child, 0, kDrawSeconds, &reason) || !Succeeded(*child, &reason)) {
		if (StopSignal()) {
			*error = reason;
			return false;
		}
		*note = "no charts: " + reason + (child ? "" : "; install gnuplot-nox");
		return true;
	}
	for (size_t i = 0; i < charts.size(); i++)
		drawn->push_back({charts[i].title, Tidy(ReadFile(output(i)), charts[i].title,
							"chart" + std::to_string(i + 1) + "-")});
	return true;
}

} // namespace forktail::lab
