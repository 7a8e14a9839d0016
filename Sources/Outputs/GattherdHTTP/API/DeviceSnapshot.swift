import FoundationEssentials
import GattherdGATT
package import GattherdModel

/// The status, description and newest values of one device.
struct DeviceSnapshot {
    let status: DaemonStatus.Device
    let description: DeviceDescription?
    let streams: [LiveStream]

    /// Returns a snapshot for each device of the status.
    static func all(_ status: DaemonStatus, _ snapshot: LiveStatus.Snapshot) -> [DeviceSnapshot] {
        let streams = Dictionary(grouping: snapshot.streams) { $0.stream.device }
        return status.devices.map { device in
            DeviceSnapshot(
                status: device,
                description: snapshot.descriptions[device.device],
                streams: streams[device.device] ?? []
            )
        }
    }

    /// Writes the members of the status, then `streams`, `controls` and `values`.
    func writeJSON(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.raw(StatusJSON.members(status))
        writer.key("streams")
        writer.array(description?.streams ?? []) { Self.write($1, to: &$0) }
        writer.key("controls")
        writer.array(description?.controls ?? []) { $1.writeJSON(to: &$0) }
        writer.key("values")
        NamedValues(streams, description).writeJSON(to: &writer)
        writer.endObject()
    }

    private static func write(_ stream: DeviceDescription.Stream, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("stream")
        writer.string(stream.name)
        writer.key("metrics")
        writer.array(stream.metrics) { writer, metric in
            writer.beginObject()
            writer.key("metric")
            writer.string(metric.name)
            writer.key("unit")
            writer.optional(metric.unit) { $0.string($1) }
            writer.key("kind")
            writer.string(metric.kind.rawValue)
            writer.endObject()
        }
        writer.endObject()
    }
}

extension ControlDescriptor {
    fileprivate func writeJSON(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("control")
        writer.string(name)
        kind.writeMembers(to: &writer)
        writer.key("unit")
        writer.optional(unit) { $0.string($1) }
        writer.key("throttle")
        writer.optional(throttle) { $0.real($1 / .seconds(1)) }
        writer.key("echo")
        writer.optional(echo) { $0.string($1) }
        writer.endObject()
    }
}

extension ControlKind {
    fileprivate func writeMembers(to writer: inout JSONWriter) {
        writer.key("kind")
        switch self {
        case .integer(let range):
            writer.string("integer")
            writer.key("min")
            writer.integer(range.lowerBound)
            writer.key("max")
            writer.integer(range.upperBound)
        case .real(let range):
            writer.string("real")
            writer.key("min")
            writer.real(range.lowerBound)
            writer.key("max")
            writer.real(range.upperBound)
        case .boolean: writer.string("boolean")
        case .choice(let labels):
            writer.string("choice")
            writer.key("choices")
            writer.array(labels) { $0.string($1) }
        case .trigger: writer.string("trigger")
        }
    }
}

/// The status in the form of the command line's `--json`.
enum StatusJSON {
    /// Returns a part of a status as JSON with sorted keys.
    static func bytes(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(value)).map { Array($0) } ?? Array("null".utf8)
    }

    /// Returns the members of an object without its braces.
    static func members(_ value: some Encodable) -> ArraySlice<UInt8> {
        bytes(value).dropFirst().dropLast()
    }
}

extension JSONWriter {
    /// Writes a reject: a payload that could not be decoded.
    package mutating func reject(_ reject: Reject) {
        beginObject()
        key("ts")
        timestamp(reject.time)
        key("device")
        string(reject.device)
        key("characteristic")
        string(reject.characteristic)
        key("bytes")
        string(Hexadecimal.text(reject.payload.span))
        key("reason")
        string(reject.reason)
        endObject()
    }
}
