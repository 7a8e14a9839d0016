import GattherdMQTT
import Testing

@testable import GattherdSparkplug

/// Chapter 6: payloads.
extension Requirement {
    static let payloads = common + metrics + properties + messages

    private static let common = [
        Requirement("payloads_timestamp_in_UTC", "The timestamp of a payload is in UTC") { capture throws in
            #expect(capture.publishes.allSatisfy { ($0.payload.timestamp ?? 0) > 1_600_000_000_000 })
        },
        Requirement("payloads-sequence-num-always-included", "All messages but NDEATH have a number") {
            capture throws in
            #expect(capture.publishes.allSatisfy { ($0.payload.seq == nil) == ($0.type == "NDEATH") })
        },
        Requirement("payloads-sequence-num-zero-nbirth", "NBIRTH always has the number 0") { capture throws in
            try capture.expect("NBIRTH") { $0.payload.seq == 0 }
        },
        Requirement("payloads-sequence-num-incrementing", "Numbers increase by one, and 0 follows 255") {
            capture throws in
            let numbers = capture.publishes.filter { $0.type != "NDEATH" }.map { ($0.type, $0.payload.seq ?? 999) }
            for (before, after) in zip(numbers, numbers.dropFirst()) where after.0 != "NBIRTH" {
                #expect(after.1 == (before.1 + 1) % 256)
            }
        },
    ]

    private static let metrics = [
        Requirement("payloads-name-requirement", "A metric has a name or an alias") { capture throws in
            #expect(capture.allMetrics.allSatisfy { $0.name != nil || $0.alias != nil })
        },
        Requirement("payloads-alias-uniqueness", "No two metrics of the edge node have one alias") { capture throws in
            var names: [UInt64: Set<String>] = [:]
            for message in capture.publishes {
                for metric in message.payload.metrics {
                    guard let alias = metric.alias, let name = metric.name else { continue }
                    names[alias, default: []].insert("\(message.device ?? "")/\(name)")
                }
            }
            #expect(names.count > 8)
            #expect(names.values.allSatisfy { $0.count == 1 })
        },
        Requirement("payloads-alias-birth-requirement", "Births have names and aliases, except for the rebirth") {
            capture throws in
            for metric in try capture.births("NBIRTH") + capture.births("DBIRTH") {
                #expect(metric.name != nil && (metric.alias != nil) == (metric.name != "Node Control/Rebirth"))
            }
        },
        Requirement("payloads-alias-data-cmd-requirement", "Data has aliases and no names") { capture throws in
            for type in ["NDATA", "DDATA"] {
                try capture.expect(type) { $0.payload.metrics.allSatisfy { $0.alias != nil && $0.name == nil } }
            }
        },
        Requirement("payloads-name-birth-data-requirement", "Each metric of births and data has a timestamp") {
            capture throws in
            #expect(capture.allMetrics.allSatisfy { $0.timestamp != nil })
        },
        Requirement("payloads-name-cmd-requirement", "Metrics of commands need no timestamp") { capture throws in
            #expect(!capture.controls.isEmpty)
        },
        Requirement("payloads_metric_timestamp_in_UTC", "The timestamp of a metric is that of its reading, in UTC") {
            capture throws in
            #expect(try capture.values(of: "heart_rate/rate").first?.timestamp == 1000)
        },
        Requirement("payloads-metric-datatype-value-type", "Datatypes are small numbers") { capture throws in
            #expect(try capture.births("DBIRTH").allSatisfy { $0.datatype ?? 99 <= 34 })
        },
        Requirement("payloads-metric-datatype-value", "Datatypes are those of the specification") { capture throws in
            for metric in try capture.births("NBIRTH") + capture.births("DBIRTH") {
                #expect(metric.datatype.flatMap { SparkplugDatatype(rawValue: $0) } != nil)
            }
        },
        Requirement("payloads-metric-datatype-req", "Metrics of births have a datatype") { capture throws in
            let births = try capture.births("NBIRTH") + capture.births("DBIRTH")
            #expect(births.allSatisfy { $0.datatype != nil })
        },
        Requirement("payloads-metric-datatype-not-req", "Metrics of data have no datatype") { capture throws in
            try capture.expect("DDATA") { $0.payload.metrics.allSatisfy { $0.datatype == nil } }
        },
    ]

    /// The unit is the only property; it is read from the bytes, as the codec does not decode properties.
    private static let properties = [
        Requirement("payloads-propertyset-keys-array-size", "A property set has as many keys as values") {
            capture throws in
            #expect(try propertySets(capture).allSatisfy { $0.keys == $0.values.count })
        },
        Requirement("payloads-propertyset-values-array-size", "A property set has as many values as keys") {
            capture throws in
            #expect(try propertySets(capture).contains { $0.values.count == 1 && $0.keys == 1 })
        },
        Requirement("payloads-metric-propertyvalue-type-type", "The type of a property is a number") { capture throws in
            #expect(try propertySets(capture).flatMap(\.values).allSatisfy { $0 <= 34 })
        },
        Requirement("payloads-metric-propertyvalue-type-value", "The type of a unit is that of a text") {
            capture throws in
            #expect(try propertySets(capture).flatMap(\.values).allSatisfy { $0 == 12 })
        },
        Requirement("payloads-metric-propertyvalue-type-req", "Properties in births have a type") { capture throws in
            #expect(try !propertySets(capture).flatMap(\.values).contains(0))
        },
    ]

    private static let messages = node + device

    private static let node = [
        Requirement("payloads-nbirth-timestamp", "NBIRTH has the time of publishing") {
            try $0.expectTimestamp("NBIRTH")
        },
        Requirement("payloads-nbirth-edge-node-descriptor", "NBIRTH is that of one edge node") { capture throws in
            #expect(try Set(capture.messages("NBIRTH").map(\.topic)).count == 1)
        },
        Requirement("payloads-nbirth-seq", "NBIRTH has a number") { try $0.expect("NBIRTH") { $0.payload.seq == 0 } },
        Requirement("payloads-nbirth-bdseq", "NBIRTH has the metric bdSeq") { capture throws in
            try capture.expect("NBIRTH") { WireCapture.bdSeq($0.payload) != nil }
        },
        Requirement("payloads-nbirth-bdseq-repeat", "NBIRTH repeats bdSeq of the will, also at a rebirth") {
            capture throws in
            #expect(try capture.messages("NBIRTH").map { WireCapture.bdSeq($0.payload) } == [0, 0, 1])
        },
        Requirement("payloads-nbirth-rebirth-req", "NBIRTH has Node Control/Rebirth with false") { capture throws in
            #expect(try capture.rebirthMetrics.allSatisfy { $0.value == .boolean(false) })
        },
        Requirement("payloads-nbirth-qos", "NBIRTH has QoS 0") { try $0.expect("NBIRTH") { $0.qos == 0 } },
        Requirement("payloads-nbirth-retain", "NBIRTH is not retained") { try $0.expect("NBIRTH") { !$0.isRetained } },
        Requirement("payloads-ndata-timestamp", "NDATA has the time of publishing") { try $0.expectTimestamp("NDATA") },
        Requirement("payloads-ndata-seq", "NDATA has a number") { try $0.expect("NDATA") { $0.payload.seq != nil } },
        Requirement("payloads-ndata-seq-inc", "NDATA has the next number") { try $0.expectNextSeq("NDATA") },
        Requirement("payloads-ndata-order", "NDATA follows the births of the node and its devices") { capture throws in
            let birth = try capture.position(of: "DBIRTH")
            #expect(try capture.position(of: "NDATA") > birth)
        },
        Requirement("payloads-ndata-qos", "NDATA has QoS 0") { try $0.expect("NDATA") { $0.qos == 0 } },
        Requirement("payloads-ndata-retain", "NDATA is not retained") { try $0.expect("NDATA") { !$0.isRetained } },
        Requirement("payloads-ndeath-seq", "NDEATH has no number") {
            try $0.expect("NDEATH") { $0.payload.seq == nil }
        },
        Requirement("payloads-ndeath-will-message", "NDEATH is the will") { capture throws in
            #expect(capture.connects.allSatisfy { $0.flags & 0x04 != 0 && $0.willTopic.contains("/NDEATH/") })
        },
        Requirement("payloads-ndeath-will-message-qos", "The will has QoS 1") { capture throws in
            #expect(capture.connects.allSatisfy { $0.flags & 0x18 == 0x08 })
        },
        Requirement("payloads-ndeath-will-message-retain", "The will is not retained") { capture throws in
            #expect(capture.connects.allSatisfy { $0.flags & 0x20 == 0 })
        },
        Requirement("payloads-ndeath-bdseq", "NDEATH has bdSeq of the NBIRTH before") { capture throws in
            var last: UInt64?
            for message in capture.publishes {
                if message.type == "NBIRTH" { last = WireCapture.bdSeq(message.payload) }
                if message.type == "NDEATH" { #expect(WireCapture.bdSeq(message.payload) == last) }
            }
        },
        Requirement("payloads-ndeath-will-message-publisher", "NDEATH is published before a disconnect on purpose") {
            capture throws in
            #expect(try capture.messages("NDEATH").map(\.connection) == [0, 1])
        },
        Requirement("payloads-ndeath-will-message-publisher-disconnect-mqtt311", "NDEATH comes before DISCONNECT") {
            capture throws in
            for end in capture.disconnects {
                #expect(capture.publishes.last { $0.connection == end.connection }?.type == "NDEATH")
            }
        },
        Requirement(
            "payloads-ndeath-will-message-publisher-disconnect-mqtt50",
            "DISCONNECT of MQTT 5 asks for the will"
        ) {
            capture throws in
            #expect(capture.disconnects.map(\.body) == (capture.version == .v5 ? [[0x04], [0x04]] : [[], []]))
        },
    ]

    private static let device = [
        Requirement("payloads-dbirth-timestamp", "DBIRTH has the time of publishing") {
            try $0.expectTimestamp("DBIRTH")
        },
        Requirement("payloads-dbirth-seq", "DBIRTH has a number") { try $0.expect("DBIRTH") { $0.payload.seq != nil } },
        Requirement("payloads-dbirth-seq-inc", "DBIRTH has the next number") { try $0.expectNextSeq("DBIRTH") },
        Requirement("payloads-dbirth-order", "Births of devices follow NBIRTH at once") { capture throws in
            let rebirth = try capture.position(of: "NBIRTH", after: capture.marks.rebirth)
            let next = capture.publishes.filter { $0.position > rebirth }.prefix(2)
            #expect(next.map(\.type) == ["DBIRTH", "DBIRTH"])
        },
        Requirement("payloads-dbirth-qos", "DBIRTH has QoS 0") { try $0.expect("DBIRTH") { $0.qos == 0 } },
        Requirement("payloads-dbirth-retain", "DBIRTH is not retained") { try $0.expect("DBIRTH") { !$0.isRetained } },
        Requirement("payloads-ddata-timestamp", "DDATA has the time of publishing") { try $0.expectTimestamp("DDATA") },
        Requirement("payloads-ddata-seq", "DDATA has a number") { try $0.expect("DDATA") { $0.payload.seq != nil } },
        Requirement("payloads-ddata-seq-inc", "DDATA has the next number") { try $0.expectNextSeq("DDATA") },
        Requirement("payloads-ddata-order", "DDATA follows the births of the node and of its device") {
            capture throws in
            var born: Set<String> = []
            for message in capture.publishes {
                if message.type == "NBIRTH" || message.type == "NDEATH" { born.removeAll() }
                if message.type == "DBIRTH" { born.insert(message.device ?? "") }
                if message.type == "DDEATH" { born.remove(message.device ?? "") }
                if message.type == "DDATA" { #expect(born.contains(message.device ?? "")) }
            }
        },
        Requirement("payloads-ddata-qos", "DDATA has QoS 0") { try $0.expect("DDATA") { $0.qos == 0 } },
        Requirement("payloads-ddata-retain", "DDATA is not retained") { try $0.expect("DDATA") { !$0.isRetained } },
        Requirement("payloads-ddeath-timestamp", "DDEATH has the time of publishing") {
            try $0.expectTimestamp("DDEATH")
        },
        Requirement("payloads-ddeath-seq", "DDEATH has a number") { try $0.expect("DDEATH") { $0.payload.seq != nil } },
        Requirement("payloads-ddeath-seq-inc", "DDEATH has the next number") { try $0.expectNextSeq("DDEATH") },
        Requirement("payloads-ddeath-seq-number", "The number of DDEATH continues that of data") { capture throws in
            #expect(try capture.messages("DDEATH").allSatisfy { ($0.payload.seq ?? 0) > 0 })
        },
    ]

    /// The property sets of all births: the number of keys, and the types of the values.
    private static func propertySets(_ capture: WireCapture) throws -> [(keys: Int, values: [UInt64])] {
        try capture.messages("DBIRTH").flatMap { message in
            try fields(message.bytes[...], 2).flatMap { try fields($0, 9) }.map { set in
                let types = try fields(set, 2).map { value -> UInt64 in
                    var reader = ProtobufReader(value)
                    guard case .varint(let type)? = try reader.next()?.value else { return 0 }
                    return type
                }
                return (try fields(set, 1).count, types)
            }
        }
    }

    /// The nested messages in a field.
    private static func fields(_ bytes: ArraySlice<UInt8>, _ number: UInt64) throws -> [ArraySlice<UInt8>] {
        var reader = ProtobufReader(bytes)
        var fields: [ArraySlice<UInt8>] = []
        while let field = try reader.next() {
            if case .bytes(let bytes) = field.value, field.number == number { fields.append(bytes) }
        }
        return fields
    }
}
