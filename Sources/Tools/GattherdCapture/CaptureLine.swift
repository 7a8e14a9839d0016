import GattherdGATT
import GattherdModel
import GattherdYAML

/// One line of a capture.
package enum CaptureLine: Hashable, Sendable {
    case header(CaptureHeader)
    case value(CaptureValue)
    /// The header of a capture of advertisements.
    case advertisements
    case advertisement(CapturedAdvertisement)

    /// Parses a line.
    ///
    /// Unknown members are ignored.
    ///
    /// - Parameters:
    ///   - octets: The line, without its line break.
    ///   - number: Its number in the file, from 1.
    ///   - file: The file's name, for errors.
    /// - Throws: ``CaptureError`` if the line is invalid.
    package init(_ octets: ArraySlice<UInt8>, _ number: Int, file: String) throws(CaptureError) {
        let node: YAMLNode?
        do throws(YAMLError) {
            // JSON is a subset of YAML, except for details that captures do not use.
            node = try YAML.parse(Array(octets))
        } catch {
            throw CaptureError(file, number, "invalid JSON: \(error.problem)")
        }
        guard let node, node.members != nil else { throw CaptureError(file, number, "not a JSON object") }
        let reader = CaptureLineReader(node: node, file: file, line: number)
        if node["capture"] != nil {
            self = try reader.heading()
        } else if node["source"]?.text == ReadingSource.advert.rawValue {
            self = .advertisement(try reader.advertisement())
        } else {
            self = .value(try reader.value())
        }
    }
}

/// Parses the members of one line.
struct CaptureLineReader {
    private static let version = "1"

    let node: YAMLNode
    let file: String
    let line: Int

    func value() throws(CaptureError) -> CaptureValue {
        CaptureValue(
            time: try member("ts", "a time such as 2026-11-21T03:20:05.123456Z") { Timestamp(rfc3339: $0.utf8) },
            service: try member("service", "a UUID") { BluetoothUUID($0) },
            characteristic: try member("characteristic", "a UUID") { BluetoothUUID($0) },
            source: try member("source", "notify, indicate or read") { ReadingSource(rawValue: $0) },
            octets: try member("hex", "bytes in hexadecimal") { Hexadecimal.octets($0) }
        )
    }

    func advertisement() throws(CaptureError) -> CapturedAdvertisement {
        let octets = try member("hex", "bytes in hexadecimal") { Hexadecimal.octets($0) }
        var found = CapturedAdvertisement(octets: octets)
        if node["ts"] != nil {
            found.time = try member("ts", "a time such as 2026-11-21T03:20:05.123456Z") { Timestamp(rfc3339: $0.utf8) }
        }
        if node["address"] != nil {
            found.address = try member("address", "a Bluetooth address") { BluetoothAddress($0) }
        }
        if node["rssi"] != nil { found.rssi = try member("rssi", "a number in dBm") { Int($0) } }
        return found
    }

    /// Parses the first line.
    func heading() throws(CaptureError) -> CaptureLine {
        guard node["capture"]?.text == Self.version else {
            throw error("unsupported capture version; this gattherd reads version \(Self.version)")
        }
        return node["advertisements"] == nil ? .header(try header()) : .advertisements
    }

    private func header() throws(CaptureError) -> CaptureHeader {
        let address = try member("address", "a Bluetooth address") { BluetoothAddress($0) }
        let name = node["name"].flatMap { $0.isNull ? nil : $0.text }
        var services: [CaptureHeader.Service] = []
        for service in node["services"]?.elements ?? [] { services.append(try self.service(service)) }
        return CaptureHeader(address: address, name: name, services: services)
    }

    private func service(_ node: YAMLNode) throws(CaptureError) -> CaptureHeader.Service {
        var characteristics: [CaptureHeader.Characteristic] = []
        for entry in node["characteristics"]?.elements ?? [] {
            let properties = (entry["properties"]?.elements ?? []).compactMap(\.text)
            characteristics.append(CaptureHeader.Characteristic(try uuid(of: entry), properties: properties))
        }
        return CaptureHeader.Service(try uuid(of: node), characteristics)
    }

    private func uuid(of node: YAMLNode) throws(CaptureError) -> BluetoothUUID {
        guard let uuid = node["uuid"]?.text.flatMap({ BluetoothUUID($0) }) else {
            throw error("a service or characteristic has no \"uuid\"")
        }
        return uuid
    }

    private func member<Value>(
        _ name: String,
        _ expected: String,
        _ parse: (String) -> Value?
    ) throws(CaptureError) -> Value {
        guard let text = node[name]?.text else { throw error("\"\(name)\" is missing: \(expected)") }
        guard let value = parse(text) else { throw error("\"\(name)\" is '\(text)'; expected \(expected)") }
        return value
    }

    private func error(_ reason: String) -> CaptureError { CaptureError(file, line, reason) }
}

extension CaptureLine {
    /// The line as JSON, with its line break.
    package var json: [UInt8] {
        let octets = JSONWriter.bytes { writer in
            writer.beginObject()
            switch self {
            case .header(let header): Self.write(header, to: &writer)
            case .value(let value): Self.write(value, to: &writer)
            case .advertisements: Self.writeHeading(to: &writer)
            case .advertisement(let advertisement): Self.write(advertisement, to: &writer)
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
            writer.array(service.characteristics) { write($1, to: &$0) }
            writer.endObject()
        }
        writer.endArray()
    }

    private static func writeHeading(to writer: inout JSONWriter) {
        writer.key("capture")
        writer.integer(1)
        writer.key("advertisements")
        writer.boolean(true)
    }

    private static func write(_ advertisement: CapturedAdvertisement, to writer: inout JSONWriter) {
        if let time = advertisement.time {
            writer.key("ts")
            writer.timestamp(time)
        }
        if let address = advertisement.address { write("address", address.description, to: &writer) }
        if let rssi = advertisement.rssi {
            writer.key("rssi")
            writer.integer(Int64(rssi))
        }
        write("source", ReadingSource.advert.rawValue, to: &writer)
        write("hex", Hexadecimal.text(advertisement.octets.span), to: &writer)
    }

    private static func write(_ characteristic: CaptureHeader.Characteristic, to writer: inout JSONWriter) {
        writer.beginObject()
        write("uuid", characteristic.uuid.description, to: &writer)
        writer.key("properties")
        writer.array(characteristic.properties) { $0.string($1) }
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
