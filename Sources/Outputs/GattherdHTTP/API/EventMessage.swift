import GattherdModel

/// Messages of the event stream: a name and a line of JSON (HTML, "Server-sent events").
enum EventMessage {
    /// A comment, which also detects a closed connection.
    static let keepAlive = Array(":\n\n".utf8)

    /// The whole state, for new readers and for readers that missed messages.
    static func snapshot(_ status: DaemonStatus, _ snapshot: LiveStatus.Snapshot, now: Timestamp) -> [UInt8] {
        message("snapshot") { writer in
            writer.beginObject()
            writer.key("now")
            writer.timestamp(now)
            writer.key("status")
            writer.raw(StatusJSON.bytes(status.withoutDevices))
            writer.key("devices")
            writer.array(DeviceSnapshot.all(status, snapshot)) { $1.writeJSON(to: &$0) }
            writer.key("events")
            writer.array(snapshot.events) { $0.event($1) }
            writer.endObject()
        }
    }

    /// The status of adapters, history and broker, and by device its counts and the downloads of its stored records.
    static func gateway(_ status: DaemonStatus, now: Timestamp) -> [UInt8] {
        message("gateway") { writer in
            writer.beginObject()
            writer.key("now")
            writer.timestamp(now)
            writer.key("status")
            writer.raw(StatusJSON.bytes(status.withoutDevices))
            writer.key("counts")
            writer.beginObject()
            for device in status.devices {
                writer.key(device.device)
                writeCounts(of: device, to: &writer)
            }
            writer.endObject()
            writer.key("records")
            writer.beginObject()
            for device in status.devices {
                guard let downloads = device.records else { continue }
                writer.key(device.device)
                writer.raw(StatusJSON.bytes(downloads))
            }
            writer.endObject()
            writer.endObject()
        }
    }

    /// Writes the numbers of readings and rejects, the RSSI, and the last advertisement in whole seconds since 1970.
    ///
    /// The array ends with the last of these that is known: all clients receive it every second.
    private static func writeCounts(of device: DaemonStatus.Device, to writer: inout JSONWriter) {
        let heard = device.lastHeard.flatMap { Timestamp(rfc3339: $0.utf8) }
        writer.beginArray()
        writer.integer(device.readings)
        writer.integer(device.rejects)
        if device.rssi != nil || heard != nil { writer.optional(device.rssi) { $0.integer($1) } }
        if let heard { writer.integer(heard.microseconds / 1_000_000) }
        writer.endArray()
    }

    /// The newest values of the streams that had readings, by device and metric; see ``NamedValues``.
    static func values(_ streams: [LiveStream], _ descriptions: [String: DeviceDescription]) -> [UInt8] {
        message("values") { writer in
            writer.beginObject()
            for (device, streams) in Dictionary(grouping: streams, by: \.stream.device) {
                writer.key(device)
                NamedValues(streams, descriptions[device]).writeJSON(to: &writer)
            }
            writer.endObject()
        }
    }

    static func link(_ status: LinkStatus) -> [UInt8] {
        message("link") { writer in
            writer.beginObject()
            writer.key("device")
            writer.string(status.device)
            writer.raw(JSONWriter.bytes { status.writeJSON(to: &$0) }.dropFirst().dropLast())
            writer.endObject()
        }
    }

    static func device(_ device: DeviceSnapshot) -> [UInt8] {
        message("device") { device.writeJSON(to: &$0) }
    }

    static func event(_ event: LifecycleEvent) -> [UInt8] {
        message("event") { $0.event(event) }
    }

    /// Returns a message of one line: JSON has no line breaks outside strings, and escapes them inside.
    private static func message(_ name: String, _ body: (inout JSONWriter) -> Void) -> [UInt8] {
        Array("event: \(name)\ndata: ".utf8) + JSONWriter.bytes(body) + Array("\n\n".utf8)
    }
}

extension DaemonStatus {
    fileprivate var withoutDevices: DaemonStatus {
        var status = self
        status.devices = []
        return status
    }
}
