import GattherdModel

/// The newest values of a device's streams, by the name of the metric.
///
/// A metric of several streams also has a member `stream/metric` for each. Its plain name has the value of the first of
/// these streams by name.
struct NamedValues {
    private(set) var members: [(name: String, value: SampleValue)] = []
    private var places: [String: Int] = [:]

    /// - Parameters:
    ///   - streams: Streams of the device.
    ///   - description: The device's description, with all of its streams.
    init(_ streams: [LiveStream], _ description: DeviceDescription?) {
        let shared = description?.sharedMetrics ?? [:]
        for live in streams.sorted(by: { ($0.time, $0.stream.stream) < ($1.time, $1.stream.stream) }) {
            for (metric, value) in live.values { add(value, of: metric.name, live.stream.stream, shared) }
        }
    }

    private mutating func add(_ value: SampleValue, of metric: String, _ stream: String, _ shared: [String: String]) {
        guard let first = shared[metric] else { return set(metric, value) }
        set("\(stream)/\(metric)", value)
        if first == stream { set(metric, value) }
    }

    private mutating func set(_ name: String, _ value: SampleValue) {
        if let place = places[name] {
            members[place].value = value
        } else {
            places[name] = members.count
            members.append((name, value))
        }
    }

    /// Writes an object with a member for each value.
    func writeJSON(to writer: inout JSONWriter) {
        writer.beginObject()
        for member in members {
            writer.key(member.name)
            writer.value(member.value)
        }
        writer.endObject()
    }
}

extension DeviceDescription {
    /// The metrics that several streams have, with the first of these streams by name.
    ///
    /// The signal strength is one metric of the device, although each advertisement has it.
    fileprivate var sharedMetrics: [String: String] {
        var (first, shared): ([String: String], [String: String]) = ([:], [:])
        for stream in streams.sorted(by: { $0.name < $1.name }) {
            for metric in stream.metrics where metric.name != MetricDescriptor.signalStrength.name {
                if let other = first[metric.name] {
                    if other != stream.name { shared[metric.name] = other }
                } else {
                    first[metric.name] = stream.name
                }
            }
        }
        return shared
    }
}
