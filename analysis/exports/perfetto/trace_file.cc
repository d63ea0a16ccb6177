// SPDX-License-Identifier: MIT
// See trace_file.h. All packets are one sequence, so that there is one dictionary.
#include "trace_file.h"

#include <algorithm>
#include <cerrno>

namespace forktail::analysis::exports
{

namespace
{

using Message = protozero::pbf_writer;

constexpr size_t kBuffer = 1 << 20;
constexpr uint64_t kNames = 1 << 14; // most interned names of one kind; later ones are written in full
constexpr uint32_t kSequence = 1;
// Two recordings read the clocks of one host at almost the same time, each with its own error. If any clock
// went back, Perfetto would refuse the reading.
constexpr uint64_t kBetweenReadings = 1'000'000;

void AddClock(Message *snapshot, uint32_t id, uint64_t t_ns)
{
	Message clock(*snapshot, kClocks);
	clock.add_uint32(kClockId, id);
	clock.add_uint64(kClockTime, t_ns);
}

bool IsAfter(const ft_clock &c, const ft_clock &last)
{
	return c.monotonic_ns > last.monotonic_ns + kBetweenReadings && c.realtime_ns > last.realtime_ns &&
	       c.boottime_ns > last.boottime_ns;
}

} // namespace

TraceFile::~TraceFile()
{
	if (file_)
		fclose(file_);
}

int TraceFile::Open(const std::string &path)
{
	file_ = fopen(path.c_str(), "we");
	return error_ = file_ ? 0 : errno;
}

int TraceFile::Close()
{
	Flush();
	if (file_ && fclose(file_) != 0 && !error_)
		error_ = errno;
	file_ = nullptr;
	return error_;
}

void TraceFile::Flush()
{
	errno = 0;
	if (!error_ && fwrite(out_.data(), 1, out_.size(), file_) != out_.size())
		error_ = errno ? errno : EIO;
	out_.clear();
}

// Writes a packet with the names that were interned since the last one, and the sequence id.
void TraceFile::Put(const std::string &packet)
{
	std::string all = packet;
	Message message(all);
	if (!interned_.empty())
		message.add_message(kInternedData, interned_);
	interned_.clear();
	message.add_uint32(kSequenceId, kSequence);
	Message(out_).add_message(kPacket, all);
	if (out_.size() >= kBuffer)
		Flush();
}

void TraceFile::Clocks(std::vector<ft_clock> readings)
{
	std::string packet;
	{
		Message first(packet);
		first.add_uint32(kSequenceFlags, kStateCleared);
		Message defaults(first, kDefaults);
		defaults.add_uint32(kDefaultClock, kMonotonic);
	}
	Put(packet);
	std::sort(readings.begin(), readings.end(),
		  [](const ft_clock &a, const ft_clock &b) { return a.monotonic_ns < b.monotonic_ns; });
	if (readings.empty()) // a trace must define its clock
		readings.push_back({});
	const ft_clock *last = nullptr;
	for (const ft_clock &c : readings) {
		if (last && !IsAfter(c, *last))
			continue;
		last = &c;
		packet.clear();
		{
			Message message(packet);
			Message snapshot(message, kClockSnapshot);
			AddClock(&snapshot, kMonotonic, c.monotonic_ns);
			if (c.realtime_ns)
				AddClock(&snapshot, kRealtime, c.realtime_ns);
			if (c.boottime_ns)
				AddClock(&snapshot, kBoottime, c.boottime_ns);
			snapshot.add_uint32(kPrimaryClock, kMonotonic);
		}
		Put(packet);
	}
}

uint64_t TraceFile::Define(const std::string &descriptor)
{
	std::string text = descriptor, packet;
	Message(text).add_uint64(kUuid, ++tracks_);
	Message(packet).add_message(kTrackDescriptor, text);
	Put(packet);
	return tracks_;
}

uint64_t TraceFile::Track(const std::string &name, uint64_t parent)
{
	std::string text;
	Message message(text);
	message.add_string(kTrackName, name);
	if (parent)
		message.add_uint64(kParentUuid, parent);
	return Define(text);
}

uint64_t TraceFile::Process(uint32_t pid, const std::string &name)
{
	std::string text;
	{
		Message message(text);
		Message process(message, kProcess);
		process.add_uint32(kProcessPid, pid);
		process.add_string(kProcessName, name);
	}
	return Define(text);
}

uint64_t TraceFile::Thread(uint32_t pid, uint32_t tid, const std::string &name)
{
	std::string text;
	{
		Message message(text);
		Message thread(message, kThread);
		thread.add_uint32(kThreadPid, pid);
		thread.add_uint32(kThreadTid, tid);
		thread.add_string(kThreadName, name);
	}
	return Define(text);
}

uint64_t TraceFile::Counter(const std::string &name, const std::string &unit, uint64_t parent)
{
	std::string text;
	{
		Message message(text);
		message.add_string(kTrackName, name);
		if (parent)
			message.add_uint64(kParentUuid, parent);
		Message counter(message, kCounter);
		if (unit == "ns")
			counter.add_enum(kUnit, kUnitNs);
		else if (unit == "bytes")
			counter.add_enum(kUnit, kUnitBytes);
		else
			counter.add_string(kUnitName, unit);
	}
	return Define(text);
}

uint64_t TraceFile::Intern(InternedData kind, const std::string &text)
{
	const auto found = names_.find({kind, text});
	if (found != names_.end())
		return found->second;
	uint64_t &count = counts_[kind];
	// Arguments and categories are few, and frames need interned names.
	if (kind == kEventNames && count >= kNames)
		return 0;
	const uint64_t id = names_[{kind, text}] = ++count;
	Message data(interned_);
	Message entry(data, kind);
	entry.add_uint64(kIid, id);
	entry.add_string(kText, text);
	return id;
}

template <class AddMore>
void TraceFile::PutEvent(EventType type, uint64_t track, uint64_t t_ns, const AddMore &add_more)
{
	std::string packet;
	{
		Message message(packet);
		message.add_uint64(kTimestamp, t_ns);
		message.add_uint32(kSequenceFlags, kNeedsState);
		Message event(message, kTrackEvent);
		event.add_enum(kType, type);
		event.add_uint64(kTrackUuid, track);
		add_more(event);
	}
	Put(packet);
}

void TraceFile::Event(EventType type, const Slice &slice)
{
	PutEvent(type, slice.track, slice.start_ns, [&](Message &event) {
		if (const uint64_t name = Intern(kEventNames, slice.name))
			event.add_uint64(kNameIid, name);
		else
			event.add_string(kName, slice.name);
		if (*slice.category)
			event.add_uint64(kCategoryIids, Intern(kCategories, slice.category));
		for (const Argument &a : slice.arguments) {
			Message argument(event, kAnnotations);
			argument.add_uint64(kAnnotationNameIid, Intern(kAnnotationNames, a.name));
			if (a.text.empty())
				argument.add_uint64(kAnnotationUint, a.number);
			else
				argument.add_string(kAnnotationText, a.text);
		}
		for (uint64_t flow : slice.flows)
			event.add_fixed64(kFlowIds, flow);
	});
}

void TraceFile::End(uint64_t track, uint64_t t_ns)
{
	PutEvent(kEnd, track, t_ns, [](Message &) {});
}

void TraceFile::Count(uint64_t track, uint64_t t_ns, double value)
{
	PutEvent(kCounterEvent, track, t_ns,
		 [&](Message &event) { event.add_double(kDoubleCounterValue, value); });
}

void TraceFile::Count(uint64_t track, uint64_t t_ns, uint64_t value)
{
	PutEvent(kCounterEvent, track, t_ns,
		 [&](Message &event) { event.add_int64(kCounterValue, static_cast<int64_t>(value)); });
}

uint64_t TraceFile::FrameOf(const std::string &function, const std::string &module)
{
	const uint64_t name = Intern(kFunctionNames, function);
	const uint64_t known = counts_[kMappingPaths];
	const uint64_t path = Intern(kMappingPaths, module); // a mapping for each path, with the same number
	if (path > known) {
		Message data(interned_);
		Message mapping(data, kMappings);
		mapping.add_uint64(kIid, path);
		mapping.add_uint64(kPathIds, path);
	}
	const auto [at, added] = frames_.try_emplace({name, path}, frames_.size() + 1);
	if (added) {
		Message data(interned_);
		Message frame(data, kFrames);
		frame.add_uint64(kIid, at->second);
		frame.add_uint64(kFrameFunction, name);
		frame.add_uint64(kFrameMapping, path);
	}
	return at->second;
}

uint64_t TraceFile::Stack(const std::vector<std::pair<std::string, std::string>> &frames)
{
	std::vector<uint64_t> ids;
	for (auto f = frames.rbegin(); f != frames.rend(); ++f) // outermost first
		ids.push_back(FrameOf(f->first, f->second));
	Message data(interned_);
	Message stack(data, kCallstacks);
	stack.add_uint64(kIid, ++stacks_);
	for (uint64_t id : ids)
		stack.add_uint64(kFrameIds, id);
	return stacks_;
}

void TraceFile::Sample(uint64_t t_ns, uint32_t cpu, uint32_t pid, uint32_t tid, bool kernel, uint64_t stack)
{
	std::string packet;
	{
		Message message(packet);
		message.add_uint64(kTimestamp, t_ns);
		message.add_uint32(kSequenceFlags, kNeedsState);
		Message sample(message, kPerfSample);
		sample.add_uint32(kSampleCpu, cpu);
		sample.add_uint32(kSamplePid, pid);
		sample.add_uint32(kSampleTid, tid);
		if (stack)
			sample.add_uint64(kSampleStack, stack);
		sample.add_enum(kSampleMode, kernel ? kModeKernel : kModeUser);
	}
	Put(packet);
}

} // namespace forktail::analysis::exports
