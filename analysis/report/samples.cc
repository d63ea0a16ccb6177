// SPDX-License-Identifier: MIT
// There may be more samples than a page can hold, as with requests. Samples around episodes, and separately
// the others, are then thinned to every second, fourth ..., and each represents the dropped ones too.
#include "samples.h"

#include <algorithm>
#include <tuple>

#include "analysis/evidence/activity.h"

namespace forktail::analysis::report
{

namespace
{

constexpr uint64_t kSixteenthNs = 1'000'000 / 16;
constexpr uint64_t kOldPeriodNs = 1'000'000; // period of old recordings that do not have it
constexpr size_t kActivities = 255;
constexpr size_t kStacks = 65'000, kFunctions = 65'000, kFrames = 400'000;
constexpr size_t kDepth = 96; // frames per stack; deeper calls are dropped
constexpr size_t kNameBytes = 160;

// Unique stacks, with their functions by number.
class StackTable
{
public:
	StackTable(const Run &run, ReportSamples *out) : run_(run), out_(*out)
	{
		out_.functions.push_back("other");
		out_.stack_first.push_back(0);
		Append({0}, 0);
	}
	uint16_t Number(uint32_t stack)
	{
		auto [known, is_new] = known_.try_emplace(stack, 0);
		if (is_new && stack < run_.stacks.size())
			known->second = Append(run_.stacks[stack]);
		return known->second;
	}

private:
	uint16_t Append(const std::vector<uint16_t> &frames, size_t kernel)
	{
		if (out_.stack_kernel.size() >= kStacks || out_.stack_frame.size() + frames.size() > kFrames)
			return 0;
		out_.stack_frame.insert(out_.stack_frame.end(), frames.begin(), frames.end());
		out_.stack_first.push_back(static_cast<uint32_t>(out_.stack_frame.size()));
		out_.stack_kernel.push_back(static_cast<uint8_t>(kernel));
		return static_cast<uint16_t>(out_.stack_kernel.size() - 1);
	}
	uint16_t Append(const Stack &stack)
	{
		std::vector<uint16_t> frames;
		for (size_t i = stack.frames.size(); i-- > 0 && frames.size() < kDepth;)
			frames.push_back(Function(stack.frames[i].function.empty()
						      ? "[" + stack.frames[i].module + "]"
						      : stack.frames[i].function));
		size_t user = frames.size();
		for (size_t i = stack.kernel.size(); i-- > 0 && frames.size() < 2 * kDepth;)
			frames.push_back(Function(stack.kernel[i]));
		if (frames.empty())
			return 0;
		return Append(frames, frames.size() - user);
	}
	uint16_t Function(std::string name)
	{
		if (name.size() > kNameBytes)
			name.resize(kNameBytes);
		auto known = functions_.find(name);
		if (known != functions_.end())
			return known->second;
		if (out_.functions.size() >= kFunctions)
			return 0;
		uint16_t number = static_cast<uint16_t>(out_.functions.size());
		out_.functions.push_back(name);
		return functions_[name] = number;
	}

	const Run &run_;
	ReportSamples &out_;
	std::unordered_map<uint32_t, uint16_t> known_; // Run's number -> the page's
	std::unordered_map<std::string, uint16_t> functions_;
};

} // namespace

SampleCollector::SampleCollector(const Explanation &explanation, const ReportClock &clock,
				 const SampleLimits &limits)
    : e_(explanation), clock_(clock),
      around_(Surroundings(explanation.episodes)), near_{limits.near}, far_{limits.far}
{
	for (int thread : e_.serving)
		if (thread >= 0)
			threads_.push_back(static_cast<uint32_t>(thread));
	// Servers may share a thread, such as replicas in one process.
	std::sort(threads_.begin(), threads_.end());
	threads_.erase(std::unique(threads_.begin(), threads_.end()), threads_.end());
}

void SampleCollector::Thinned::Add(StoredSample sample)
{
	if (seen++ % stride)
		return;
	sample.length_ns *= stride;
	kept.push_back(sample);
	if (kept.size() <= limit)
		return;
	for (size_t i = 0; 2 * i < kept.size(); i++) {
		kept[i] = kept[2 * i];
		kept[i].length_ns *= 2;
	}
	kept.resize((kept.size() + 1) / 2);
	stride *= 2;
}

uint8_t SampleCollector::NumberOf(const std::string &activity)
{
	auto known = numbers_.find(activity);
	if (known != numbers_.end())
		return known->second;
	if (activities_.size() >= kActivities)
		return 0;
	uint8_t number = static_cast<uint8_t>(activities_.size());
	activities_.push_back(activity);
	return numbers_[activity] = number;
}

void SampleCollector::Add(uint64_t from_ns, uint64_t to_ns)
{
	const Run &run = e_.run;
	if (threads_.empty() || run.cpu_samples.empty())
		return;
	const Activities activities = ActivitiesOf(run);
	for (uint32_t number : threads_) {
		const Thread &thread = run.threads[number];
		const ft_cpu_sample *first = run.cpu_samples.data() + thread.first_cpu_sample;
		const ft_cpu_sample *end = first + thread.cpu_sample_count;
		const ft_cpu_sample *s = std::partition_point(
		    first, end, [&](const ft_cpu_sample &x) { return x.t_ns < from_ns; });
		for (; s < end && s->t_ns < to_ns; s++) {
			if (s->t_ns < clock_.begin_ns || s->t_ns > clock_.end_ns)
				continue;
			size_t index = static_cast<size_t>(s - run.cpu_samples.data());
			StoredSample kept = {s->t_ns,
					     s->period ? s->period * kSixteenthNs : kOldPeriodNs,
					     s->stack,
					     number,
					     NumberOf(activities.Of(index).name),
					     s->owner == FT_OWN_CODE};
			(IsInside(around_, s->t_ns) ? near_ : far_).Add(kept);
			total_++;
		}
	}
}

ReportSamples SampleCollector::Finish()
{
	ReportSamples out;
	out.total = total_;
	out.activities = activities_;
	std::vector<StoredSample> all = std::move(near_.kept);
	all.insert(all.end(), far_.kept.begin(), far_.kept.end());
	std::sort(all.begin(), all.end(), [](const StoredSample &a, const StoredSample &b) {
		return std::tie(a.thread, a.t_ns) < std::tie(b.thread, b.t_ns);
	});
	StackTable stacks(e_.run, &out);
	for (const StoredSample &s : all) {
		if (out.threads.empty() || out.threads.back().thread != s.thread)
			out.threads.push_back({s.thread, out.end.size(), 0});
		out.threads.back().count++;
		uint32_t end = clock_.Tick(s.t_ns);
		out.end.push_back(end);
		out.length.push_back(end - clock_.Tick(s.t_ns - std::min(s.length_ns, s.t_ns)));
		out.stack.push_back(stacks.Number(s.stack));
		out.activity.push_back(s.activity);
		out.own.push_back(s.own);
	}
	return out;
}

} // namespace forktail::analysis::report
