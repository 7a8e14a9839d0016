import GattherdGATT
import GattherdMachines
import GattherdModel
import GattherdSync

/// The state of devices that outlives their connections: stream definitions, newest values and progress of tasks.
final class StreamCatalogue: Sendable {
    /// The maximum number of different streams that a device may describe itself.
    ///
    /// Each is remembered here, in history and by the outputs, so a device with ever new names must not add more.
    static let maximumDescribed = 256

    private struct Key: Hashable, Sendable {
        let device: String
        let profile: String
        let stream: String
    }

    private struct DescribedStream: Hashable, Sendable {
        let stream: String
        let metrics: [MetricDescriptor]
    }

    private struct Shared: Sendable {
        var streams: [Key: StreamDefinition] = [:]
        var echoes: [Key: Locked<SampleValue?>] = [:]
        var progress: [Key: Locked<Int64?>] = [:]
        var records: [Key: RecordStream] = [:]
        /// The losses of streams of records, together with those whose records belong to their own.
        var losses: [Key: RecordLosses] = [:]
        var silences: [Key: SilenceWatch.Memory] = [:]
        /// The streams that devices have described themselves, by device.
        var described: [String: Set<DescribedStream>] = [:]
        /// The streams whose subscriptions use no socket for now, by device.
        var socketless: [String: Set<String>] = [:]
        var nextDecoderID = 1
    }

    private let shared = Locked(Shared())

    /// Returns the definition of a planned stream; the same object for each connection.
    func stream(device: String, _ planned: ProfileAssignment.Stream) -> StreamDefinition {
        let descriptor = planned.descriptor
        let key = Key(device: device, profile: planned.profile.name, stream: planned.name)
        return shared.withLock { shared in
            if let known = shared.streams[key], known.metrics == descriptor.metrics { return known }
            let stream = StreamDefinition(
                device: device,
                profile: planned.profile.name,
                stream: planned.name,
                metrics: descriptor.metrics
            )
            shared.streams[key] = stream
            return stream
        }
    }

    /// Records streams that a device describes itself; returns false if there would be too many different ones.
    func admit(_ streams: [CharacteristicDescriptor], describedBy device: String) -> Bool {
        shared.withLock { shared in
            let new = streams.map { DescribedStream(stream: $0.stream, metrics: $0.metrics) }
            let all = (shared.described[device] ?? []).union(new)
            guard all.count <= Self.maximumDescribed else { return false }
            shared.described[device] = all
            return true
        }
    }

    /// Removes a device; a session that is still ending keeps its own references.
    func remove(device: String) {
        shared.withLock { shared in
            shared.streams = shared.streams.filter { $0.key.device != device }
            shared.echoes = shared.echoes.filter { $0.key.device != device }
            shared.progress = shared.progress.filter { $0.key.device != device }
            shared.records = shared.records.filter { $0.key.device != device }
            shared.losses = shared.losses.filter { $0.key.device != device }
            shared.silences = shared.silences.filter { $0.key.device != device }
            shared.described[device] = nil
            shared.socketless[device] = nil
        }
    }

    /// Returns true if the next subscription of a stream may use a socket.
    func allowsSocket(device: String, stream: String) -> Bool {
        shared.withLock { $0.socketless[device]?.contains(stream) != true }
    }

    /// Makes the subscriptions of a stream use signals, until sockets are allowed again.
    func forbidSocket(device: String, stream: String) {
        shared.withLock { _ = $0.socketless[device, default: []].insert(stream) }
    }

    /// Allows sockets again.
    func allowSockets(device: String, streams: Set<String>) {
        shared.withLock { $0.socketless[device]?.subtract(streams) }
    }

    /// Returns the holder of a stream's newest value, for the control that writes it.
    func echo(device: String, stream: String) -> Locked<SampleValue?> {
        let key = Key(device: device, profile: "", stream: stream)
        return shared.withLock { shared in
            if let known = shared.echoes[key] { return known }
            let echo = Locked<SampleValue?>(nil)
            shared.echoes[key] = echo
            return echo
        }
    }

    /// Removes and returns the newest value of a stream.
    func removeEcho(device: String, stream: String) -> SampleValue? {
        let echo = shared.withLock { $0.echoes[Key(device: device, profile: "", stream: stream)] }
        return echo?.withLock { value in
            defer { value = nil }
            return value
        }
    }

    /// Returns the device's progress for the resume rule of a task.
    func progress(device: String, profile: String, _ rule: ResumeRule) -> StreamProgress {
        let key = Key(device: device, profile: profile, stream: rule.stream)
        return shared.withLock { shared in
            let newest = shared.progress[key] ?? Locked(nil)
            shared.progress[key] = newest
            return StreamProgress(metric: rule.metric, newest: newest)
        }
    }

    /// Returns the stored records of a planned stream; `nil` if its values are not records.
    func records(of device: SupervisedDevice, _ planned: ProfileAssignment.Stream) -> RecordStream? {
        guard planned.isFirst, let rule = planned.descriptor.record else { return nil }
        let key = Key(device: device.name, profile: planned.profile.name, stream: planned.name)
        let address = device.address.description
        let download = planned.profile.downloads.first { planned.isDownloaded(by: $0) }
        let end: BytePattern? = if case .request(_, let end) = download?.procedure { end } else { nil }
        return shared.withLock { shared in
            if let known = shared.records[key], known.rule == rule, known.address == address, known.end == end {
                return known
            }
            let cursor = RecordCursor.Key(device: key.device, profile: key.profile, stream: key.stream)
            let main = Key(device: key.device, profile: key.profile, stream: rule.companion ?? key.stream)
            let losses = shared.losses[main] ?? RecordLosses()
            let records = RecordStream(key: cursor, address: address, rule: rule, end: end, losses: losses)
            (shared.records[key], shared.losses[main]) = (records, losses)
            return records
        }
    }

    /// The states of a device's downloads, by stream.
    func downloads(of device: String) -> [(stream: String, status: RecordStatus)] {
        let records = shared.withLock { $0.records.filter { $0.key.device == device } }
        return records.compactMap { key, records in records.status.map { (key.stream, $0) } }
            .sorted { $0.stream < $1.stream }
    }

    /// Returns the last value of ``setSilence(_:of:)``: the memory of links that ended because the stream was silent.
    func silence(of stream: StreamDefinition) -> SilenceWatch.Memory {
        let key = Key(device: stream.device, profile: stream.profile, stream: stream.stream)
        return shared.withLock { $0.silences[key] ?? .init() }
    }

    func setSilence(_ memory: SilenceWatch.Memory, of stream: StreamDefinition) {
        let key = Key(device: stream.device, profile: stream.profile, stream: stream.stream)
        shared.withLock { $0.silences[key] = memory }
    }

    /// Returns a new number for a decoder.
    func makeDecoderID() -> Int {
        shared.withLock { shared in
            defer { shared.nextDecoderID += 1 }
            return shared.nextDecoderID
        }
    }
}
