import GattherdGATT
import GattherdModel

extension CaptureLine {
    /// The line as JSON, with its line break.
    public var json: [UInt8] {
        let octets = JSONWriter.octets { writer in
            writer.beginObject()
            switch self {
            case .header(let header): Self.write(header, to: &writer)
            case .value(let value): Self.write(value, to: &writer)
            }
            writer.endObject()
        }
        return octets + [UInt8(ascii: "\n")]
    }

    private static func write(_ header: CaptureHeader, to writer: inout JSONWriter) {
        writer.key("capture")
        writer.integer(1)
        write("address", header.address.description, to: &writer)
        if let name = header.name { write("name", name, to: &writer) }
        writer.key("services")
        writer.beginArray()
        for service in header.services {
            writer.beginObject()
            write("uuid", service.uuid.description, to: &writer)
            writer.key("characteristics")
            writer.beginArray()
            for characteristic in service.characteristics { write(characteristic, to: &writer) }
            writer.endArray()
            writer.endObject()
        }
        writer.endArray()
    }

    private static func write(_ characteristic: CaptureHeader.Characteristic, to writer: inout JSONWriter) {
        writer.beginObject()
        write("uuid", characteristic.uuid.description, to: &writer)
        writer.key("properties")
        writer.beginArray()
        for property in characteristic.properties { writer.string(property) }
        writer.endArray()
        writer.endObject()
    }

    private static func write(_ value: CaptureValue, to writer: inout JSONWriter) {
        writer.key("ts")
        writer.timestamp(value.time)
        write("service", value.service.description, to: &writer)
        write("characteristic", value.characteristic.description, to: &writer)
        write("source", value.source.rawValue, to: &writer)
        write("hex", Hexadecimal.text(value.octets.span), to: &writer)
    }

    private static func write(_ name: String, _ text: String, to writer: inout JSONWriter) {
        writer.key(name)
        writer.string(text)
    }
}
