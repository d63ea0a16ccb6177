// SPDX-License-Identifier: MIT
// See info_series.h.
#include "info_series.h"

#include <algorithm>

namespace forktail::analysis
{

namespace
{

// The value at an instant; before the first one that.
double ValueAt(const Series &s, uint64_t t_ns)
{
	const auto after =
	    std::ranges::upper_bound(s.samples, t_ns, {}, [](const Sample &sample) { return sample.t_ns; });
	return after == s.samples.begin() ? after->value : std::prev(after)->value;
}

} // namespace

const Series *InfoSeries(const Run &run, const std::string &name)
{
	const auto found =
	    std::ranges::find_if(run.series, [&](const Series &s) { return s.name == "redis." + name; });
	return found == run.series.end() || found->samples.empty() ? nullptr : &*found;
}

uint64_t WholeInfo(double value)
{
	constexpr double most = 1e18;
	return value > 0 ? static_cast<uint64_t>(std::min(value, most) + 0.5) : 0;
}

std::optional<uint64_t> InfoGrowth(const Run &run, const std::string &name, const TimeSpan &period,
				   double unit)
{
	const Series *s = InfoSeries(run, name);
	if (!s || !std::ranges::is_sorted(s->samples, {}, &Sample::value))
		return {};
	return WholeInfo((ValueAt(*s, period.until_ns) - ValueAt(*s, period.since_ns)) * unit);
}

} // namespace forktail::analysis
