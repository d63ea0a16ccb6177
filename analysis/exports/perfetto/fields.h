// SPDX-License-Identifier: MIT
// Field numbers of Perfetto's messages, as far as they are written here, by the file in google/perfetto's
// protos/perfetto/ that defines them. They never change, because Perfetto reads old traces by them.
#pragma once

#include <cstdint>

namespace forktail::analysis::exports
{

// trace/trace.proto
enum Trace : uint32_t { kPacket = 1 };
// trace/trace_packet.proto
enum TracePacket : uint32_t {
	kClockSnapshot = 6,
	kTimestamp = 8,
	kSequenceId = 10,
	kTrackEvent = 11,
	kInternedData = 12,
	kSequenceFlags = 13,
	kDefaults = 59,
	kTrackDescriptor = 60,
	kPerfSample = 66,
};
enum SequenceFlags : uint32_t { kStateCleared = 1, kNeedsState = 2 };
// trace/trace_packet_defaults.proto
enum TracePacketDefaults : uint32_t { kDefaultClock = 58 };
// trace/clock_snapshot.proto, common/builtin_clock.proto
enum ClockSnapshot : uint32_t { kClocks = 1, kPrimaryClock = 2, kClockId = 1, kClockTime = 2 };
enum BuiltinClock : uint32_t { kRealtime = 1, kMonotonic = 3, kBoottime = 6 };
// trace/track_event/track_descriptor.proto
enum TrackDescriptor : uint32_t {
	kUuid = 1,
	kTrackName = 2,
	kProcess = 3,
	kThread = 4,
	kParentUuid = 5,
	kCounter = 8,
};
// trace/track_event/process_descriptor.proto, thread_descriptor.proto, counter_descriptor.proto
enum ProcessDescriptor : uint32_t { kProcessPid = 1, kProcessName = 6 };
enum ThreadDescriptor : uint32_t { kThreadPid = 1, kThreadTid = 2, kThreadName = 5 };
enum CounterDescriptor : uint32_t { kUnit = 3, kUnitName = 6 };
enum CounterUnit : int32_t { kUnitNs = 1, kUnitCount = 2, kUnitBytes = 3 };
// trace/track_event/track_event.proto
enum TrackEvent : uint32_t {
	kCategoryIids = 3,
	kAnnotations = 4,
	kType = 9,
	kNameIid = 10,
	kTrackUuid = 11,
	kName = 23,
	kCounterValue = 30,
	kDoubleCounterValue = 44,
	kFlowIds = 47,
};
enum EventType : int32_t { kBegin = 1, kEnd = 2, kInstant = 3, kCounterEvent = 4 };
// trace/track_event/debug_annotation.proto
enum DebugAnnotation : uint32_t { kAnnotationNameIid = 1, kAnnotationUint = 3, kAnnotationText = 6 };
// trace/interned_data/interned_data.proto; entries have an iid and a name or text
enum InternedData : uint32_t {
	kCategories = 1,
	kEventNames = 2,
	kAnnotationNames = 3,
	kFunctionNames = 5,
	kFrames = 6,
	kCallstacks = 7,
	kMappingPaths = 17,
	kMappings = 19,
};
enum Entry : uint32_t { kIid = 1, kText = 2 };
// trace/profiling/profile_common.proto
enum Frame : uint32_t { kFrameFunction = 2, kFrameMapping = 3 };
enum Callstack : uint32_t { kFrameIds = 2 };
enum Mapping : uint32_t { kPathIds = 7 };
// trace/profiling/profile_packet.proto
enum PerfSample : uint32_t {
	kSampleCpu = 1,
	kSamplePid = 2,
	kSampleTid = 3,
	kSampleStack = 4,
	kSampleMode = 5
};
enum CpuMode : int32_t { kModeKernel = 1, kModeUser = 2 };

} // namespace forktail::analysis::exports
