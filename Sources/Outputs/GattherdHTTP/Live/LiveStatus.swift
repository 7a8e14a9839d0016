package import GattherdModel
import GattherdSync

/// The newest values, links and events, for the HTTP API.
///
/// Its size is bounded, and writers never wait for readers.
///
/// A value that changes several times between two reads is reported once.
package final class LiveStatus: Sendable {
    /// A copy of the whole state.
    struct Snapshot: Sendable {
        var links: [String: LinkStatus] = [:]
        var descriptions: [String: DeviceDescription] = [:]
        var streams: [LiveStream] = []
        /// The newest events, oldest first.
        var events: [LifecycleEvent] = []
    }

    /// The changes since the last read.
    struct Changes: Sendable {
        /// True if devices were added or removed: readers need a new snapshot.
        var hasOtherDevices = false
        var links: [LinkStatus] = []
        /// Devices whose description changed.
        var devices: [String] = []
        var streams: [LiveStream] = []
        /// The descriptions of all devices.
        var descriptions: [String: DeviceDescription] = [:]
        var events: [LifecycleEvent] = []
    }

    private struct Shared: Sendable {
        var links: [String: LinkStatus] = [:]
        var descriptions: [String: DeviceDescription] = [:]
        var streams: [ObjectIdentifier: LiveStream] = [:]
        var events: [LifecycleEvent] = []
        var ready: [String: UInt64] = [:]
        var failures: [LinkReason: UInt64] = [:]
        var hasOtherDevices = false
        var newLinks: Set<String> = []
        var newDevices: Set<String> = []
        var newEvents = 0
    }

    /// The number of events that are kept.
    private static let eventLimit = 200

    private let shared = Locked(Shared())

    package init() {}

    /// Records readings that were stored.
    package func observe(_ batch: ReadingBatch) {
        shared.withLock { shared in
            for reading in batch.readings {
                let key = ObjectIdentifier(reading.stream)
                if shared.streams[key]?.update(reading, batch.samples) != nil { continue }
                Self.add(reading.stream, in: &shared.streams)
                shared.streams[key]?.update(reading, batch.samples)
            }
        }
    }

    /// Adds a stream.
    ///
    /// The device's former stream of that name is removed: it may be of another profile, or have other metrics.
    private static func add(_ stream: StreamDefinition, in streams: inout [ObjectIdentifier: LiveStream]) {
        let former = streams.filter { _, live in
            live.stream.device == stream.device && live.stream.stream == stream.stream
        }
        for key in former.keys { streams[key] = nil }
        streams[ObjectIdentifier(stream)] = LiveStream(stream)
    }

    /// Makes all readers receive a new snapshot: the labels of devices may have changed.
    package func renew() {
        shared.withLock { $0.hasOtherDevices = true }
    }

    /// The newest values of all streams whose newest reading was not received late.
    package var newestValues: [(stream: StreamDefinition, metric: MetricDescriptor, value: SampleValue)] {
        shared.withLock { shared in
            shared.streams.values.filter { !$0.isPast }.flatMap { live in
                live.values.map { (live.stream, $0.metric, $0.value) }
            }
        }
    }

    /// A copy of the whole state.
    var snapshot: Snapshot { shared.withLock { Self.snapshot(of: $0) } }

    /// Returns the changes since the last call, and the whole state if it is wanted or devices were added or removed.
    func drainChanges(wantsSnapshot: Bool) -> (changes: Changes, snapshot: Snapshot?) {
        shared.withLock { shared in
            var changes = Changes()
            changes.hasOtherDevices = shared.hasOtherDevices
            changes.links = shared.newLinks.compactMap { shared.links[$0] }
            changes.devices = Array(shared.newDevices)
            changes.streams = shared.streams.values.filter(\.isNew)
            changes.descriptions = shared.descriptions
            for stream in changes.streams { shared.streams[ObjectIdentifier(stream.stream)]?.isNew = false }
            changes.events = shared.events.suffix(shared.newEvents)
            shared.hasOtherDevices = false
            shared.newLinks = []
            shared.newDevices = []
            shared.newEvents = 0
            return (changes, wantsSnapshot || changes.hasOtherDevices ? Self.snapshot(of: shared) : nil)
        }
    }

    /// The numbers of times that each device became ready, and of links that ended or failed by reason.
    var linkCounts: (ready: [String: UInt64], failures: [LinkReason: UInt64]) {
        shared.withLock { ($0.ready, $0.failures) }
    }

    private static func snapshot(of shared: Shared) -> Snapshot {
        Snapshot(
            links: shared.links,
            descriptions: shared.descriptions,
            streams: Array(shared.streams.values),
            events: shared.events
        )
    }
}

extension LiveStatus: Announcer {
    package func update(_ status: LinkStatus) {
        shared.withLock { shared in
            let before = shared.links.updateValue(status, forKey: status.device)
            shared.newLinks.insert(status.device)
            shared.ready[status.device, default: 0] += 0
            if before == nil { shared.hasOtherDevices = true }
            guard before?.state != status.state else { return }
            switch status.state {
            case .ready: shared.ready[status.device, default: 0] += 1
            case .backingOff, .failed, .disconnected: shared.failures[status.reason ?? .unknown, default: 0] += 1
            case .waiting, .connecting, .discovering, .preparing, .disconnecting, .held: break
            }
        }
    }

    package func describe(_ device: DeviceDescription) {
        shared.withLock { shared in
            guard shared.descriptions[device.device] != device else { return }
            shared.descriptions[device.device] = device
            // A removed stream, or one of a former profile, has no newest value.
            let names = Set(device.streams.map(\.name))
            let removed = shared.streams.filter { _, live in
                live.stream.device == device.device
                    && !(names.contains(live.stream.stream) && device.profiles.contains(live.stream.profile))
            }
            for key in removed.keys { shared.streams[key] = nil }
            shared.newDevices.insert(device.device)
        }
    }

    package func remove(device: String) {
        shared.withLock { shared in
            shared.hasOtherDevices = true
            shared.links[device] = nil
            shared.descriptions[device] = nil
            shared.ready[device] = nil
            shared.newLinks.remove(device)
            shared.newDevices.remove(device)
            shared.streams = shared.streams.filter { $0.value.stream.device != device }
        }
    }

    package func announce(_ event: LifecycleEvent) {
        shared.withLock { shared in
            shared.events.append(event)
            if shared.events.count > Self.eventLimit { shared.events.removeFirst() }
            shared.newEvents = min(shared.newEvents + 1, Self.eventLimit)
        }
    }
}

/// The newest values of one stream.
struct LiveStream: Sendable {
    let stream: StreamDefinition
    /// The newest value of each metric, of a list the last element; `nil` before the first value.
    private var newest = SparseArray<SampleValue>()
    /// The time of the newest reading.
    private(set) var time = Timestamp(microseconds: 0)
    /// True if the newest reading was received late.
    private(set) var isPast = false
    /// True if the values changed since the last read.
    var isNew = false

    init(_ stream: StreamDefinition) {
        self.stream = stream
    }

    /// The newest values in the order of the metrics.
    var values: [(metric: MetricDescriptor, value: SampleValue)] {
        newest.entries.map { (stream.metrics[$0.index], $0.element) }
    }

    mutating func update(_ reading: Reading, _ samples: [Sample]) {
        guard !reading.isPast || reading.time >= time else { return }
        (time, isPast) = (reading.time, reading.isPast)
        isNew = true
        for sample in samples[reading.samples] where stream.metrics.indices.contains(sample.metric) {
            newest.set(sample.value, at: sample.metric)
        }
    }
}
