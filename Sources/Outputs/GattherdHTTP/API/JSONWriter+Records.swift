import GattherdGATT
package import GattherdModel

extension JSONWriter {
    /// Writes an event in the form of the MQTT topic `bridge/event`.
    package mutating func event(_ event: LifecycleEvent) {
        beginObject()
        key("ts")
        timestamp(event.time)
        key("device")
        optional(event.device) { $0.string($1) }
        key("kind")
        string(event.kind)
        key("detail")
        raw(event.detail.utf8)
        endObject()
    }

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
        string(Hexadecimal.text(reject.octets.span))
        key("reason")
        string(reject.reason)
        endObject()
    }
}
