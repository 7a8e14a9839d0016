import GattherdModel
import Testing

@testable import GattherdSparkplug

/// Chapter 4: topics and messages.
extension Requirement {
    static let topics = topicStructure + nodeMessages + deviceMessages

    private static let topicStructure = [
        Requirement("topic-structure", "Topics are namespace, group, type, edge node, and perhaps a device") {
            capture throws in
            let types = ["NBIRTH", "NDATA", "NDEATH", "DBIRTH", "DDATA", "DDEATH"]
            for message in capture.publishes {
                #expect((4...5).contains(message.levels.count) && types.contains(message.type))
            }
        },
        Requirement("topic-structure-namespace-a", "The namespace is spBv1.0") { capture throws in
            #expect(capture.publishes.allSatisfy { $0.levels[0] == "spBv1.0" })
        },
        Requirement("topic-structure-namespace-valid-group-id", "A group has no reserved character") { capture throws in
            #expect(capture.publishes.allSatisfy { $0.levels[1] == WireCapture.group })
            for text in ["", "a+b", "a/b", "#", "a\n", String(repeating: "x", count: 129)] {
                #expect(!SparkplugTopics.isValid(identifier: text))
            }
            #expect(SparkplugTopics.isValid(identifier: "Plant 1 (Süd)"))
        },
        Requirement("topic-structure-namespace-valid-edge-node-id", "An edge node has no reserved character") {
            capture throws in
            #expect(capture.publishes.allSatisfy { $0.levels[3] == WireCapture.node })
        },
        Requirement("topic-structure-namespace-unique-edge-node-descriptor", "The edge node is the one configured") {
            capture throws in
            #expect(Set(capture.publishes.map { "\($0.levels[1])/\($0.levels[3])" }) == ["Plant 1/lab"])
        },
        Requirement("topic-structure-namespace-valid-device-id", "A device has no reserved character") {
            capture throws in
            let devices = capture.publishes.compactMap(\.device)
            #expect(devices.allSatisfy { SparkplugTopics.isValid(identifier: $0) })
        },
        Requirement("topic-structure-namespace-unique-device-id", "Each device has a name of its own") {
            capture throws in
            #expect(try Set(capture.messages("DBIRTH").map(\.device)) == ["strap", "lamp"])
        },
        Requirement("topic-structure-namespace-device-id-associated-message-types", "Device messages name the device") {
            capture throws in
            #expect(capture.publishes.allSatisfy { !$0.type.hasPrefix("D") || $0.device != nil })
        },
        Requirement("topic-structure-namespace-device-id-non-associated-message-types", "Node messages name no device")
        {
            capture throws in
            #expect(capture.publishes.allSatisfy { !$0.type.hasPrefix("N") || $0.device == nil })
        },
    ]

    private static let nodeMessages = [
        Requirement("topics-nbirth-topic", "NBIRTH has its topic") { try $0.expectTopic("NBIRTH", hasDevice: false) },
        Requirement("topics-nbirth-mqtt", "NBIRTH has QoS 0 and is not retained") { try $0.expectQoS0("NBIRTH") },
        Requirement("topics-nbirth-seq-num", "NBIRTH has the number 0") {
            try $0.expect("NBIRTH") { $0.payload.seq == 0 }
        },
        Requirement("topics-nbirth-timestamp", "NBIRTH has a timestamp") { try $0.expectTimestamp("NBIRTH") },
        Requirement("topics-nbirth-metric-reqs", "NBIRTH has all metrics of NDATA") { capture throws in
            let aliases = Set(try capture.births("NBIRTH").compactMap(\.alias))
            try capture.expect("NDATA") { $0.payload.metrics.allSatisfy { aliases.contains($0.alias ?? 0) } }
        },
        Requirement("topics-nbirth-metrics", "Metrics of NBIRTH have name, datatype and value") { capture throws in
            for metric in try capture.births("NBIRTH") {
                #expect(metric.name != nil && metric.datatype != nil && metric.value != nil)
            }
        },
        Requirement("topics-nbirth-bdseq-included", "NBIRTH has bdSeq") { capture throws in
            try capture.expect("NBIRTH") { WireCapture.bdSeq($0.payload) != nil }
        },
        Requirement("topics-nbirth-bdseq-matching", "bdSeq of NBIRTH is that of the will") { capture throws in
            let wills = try capture.wills.map { WireCapture.bdSeq($0) }
            try capture.expect("NBIRTH") { WireCapture.bdSeq($0.payload) == wills[$0.connection] }
        },
        Requirement("topics-nbirth-bdseq-increment", "bdSeq starts at 0 and grows with each CONNECT") {
            capture throws in
            #expect(try capture.wills.map { WireCapture.bdSeq($0) } == [0, 1])
        },
        Requirement("topics-nbirth-rebirth-metric", "NBIRTH has the metric Node Control/Rebirth, which is false") {
            capture throws in
            let (metrics, births) = (try capture.rebirthMetrics, try capture.messages("NBIRTH"))
            #expect(metrics.count == births.count)
            #expect(metrics.allSatisfy { $0.datatype == 11 && $0.value == .boolean(false) })
        },
        Requirement("topics-ndata-topic", "NDATA has its topic") { try $0.expectTopic("NDATA", hasDevice: false) },
        Requirement("topics-ndata-mqtt", "NDATA has QoS 0 and is not retained") { try $0.expectQoS0("NDATA") },
        Requirement("topics-ndata-seq-num", "NDATA has the next number") { try $0.expectNextSeq("NDATA") },
        Requirement("topics-ndata-timestamp", "NDATA has a timestamp") { try $0.expectTimestamp("NDATA") },
        Requirement("topics-ndata-payload", "NDATA has the changed metrics") { capture throws in
            try capture.expect("NDATA") { !$0.payload.metrics.isEmpty }
        },
        Requirement("topics-ndeath-topic", "NDEATH has its topic") { try $0.expectTopic("NDEATH", hasDevice: false) },
        Requirement("topics-ndeath-payload", "NDEATH has bdSeq only") { capture throws in
            for will in try capture.wills { #expect(will.metrics.map(\.name) == ["bdSeq"]) }
            try capture.expect("NDEATH") { $0.payload.metrics.map(\.name) == ["bdSeq"] }
        },
        Requirement("topics-ndeath-seq", "NDEATH has no number") { capture throws in
            #expect(try capture.wills.allSatisfy { $0.seq == nil })
            try capture.expect("NDEATH") { $0.payload.seq == nil }
        },
        Requirement("topics-ncmd-topic", "Commands are accepted on the topic of NCMD") { capture throws in
            #expect(try capture.position(of: "NBIRTH", after: capture.marks.rebirth) > 0)
        },
    ]

    private static let deviceMessages = [
        Requirement("topics-dbirth-topic", "DBIRTH has its topic") { try $0.expectTopic("DBIRTH", hasDevice: true) },
        Requirement("topics-dbirth-mqtt", "DBIRTH has QoS 0 and is not retained") { try $0.expectQoS0("DBIRTH") },
        Requirement("topics-dbirth-seq", "DBIRTH has the next number") { try $0.expectNextSeq("DBIRTH") },
        Requirement("topics-dbirth-timestamp", "DBIRTH has a timestamp") { try $0.expectTimestamp("DBIRTH") },
        Requirement("topics-dbirth-metric-reqs", "DBIRTH has all metrics of later data") { capture throws in
            var known: [String: Set<UInt64>] = [:]
            for message in capture.publishes {
                guard let device = message.device else { continue }
                let aliases = Set(message.payload.metrics.compactMap(\.alias))
                if message.type == "DBIRTH" { known[device] = aliases }
                if message.type == "DDATA" { #expect(aliases.isSubset(of: known[device] ?? [])) }
            }
        },
        Requirement("topics-dbirth-metrics", "Metrics of DBIRTH have name, datatype, and a value or null") {
            capture throws in
            for metric in try capture.births("DBIRTH") {
                #expect(metric.name != nil && metric.datatype != nil && metric.isNull == (metric.value == nil))
            }
        },
        Requirement("topics-ddata-topic", "DDATA has its topic") { try $0.expectTopic("DDATA", hasDevice: true) },
        Requirement("topics-ddata-mqtt", "DDATA has QoS 0 and is not retained") { try $0.expectQoS0("DDATA") },
        Requirement("topics-ddata-seq-num", "DDATA has the next number") { try $0.expectNextSeq("DDATA") },
        Requirement("topics-ddata-timestamp", "DDATA has a timestamp") { try $0.expectTimestamp("DDATA") },
        Requirement("topics-ddata-payload", "DDATA has every new value") { capture throws in
            #expect(try capture.values(of: "heart_rate/rate").count == 297)
        },
        Requirement("topics-ddeath-topic", "DDEATH has its topic") { try $0.expectTopic("DDEATH", hasDevice: true) },
        Requirement("topics-ddeath-mqtt", "DDEATH has QoS 0 and is not retained") { try $0.expectQoS0("DDEATH") },
        Requirement("topics-ddeath-seq-num", "DDEATH has the next number") { try $0.expectNextSeq("DDEATH") },
        Requirement("topics-dcmd-topic", "Commands are accepted on the topic of DCMD") { capture throws in
            #expect(capture.controls.map(\.control) == ["level", "flash"])
        },
    ]
}
