import GattherdModel
import Testing

@testable import GattherdSparkplug

/// Chapter 5: operational behaviour.
extension Requirement {
    static let operation = nodeSession + deviceSession + data + commands

    private static let nodeSession = [
        Requirement("case-sensitivity-sparkplug-ids", "No two devices differ in case only") { capture throws in
            let devices = Set(capture.publishes.compactMap(\.device))
            #expect(Set(devices.map { $0.lowercased() }).count == devices.count)
        },
        Requirement("case-sensitivity-metric-names", "No two metrics of a device differ in case only") {
            capture throws in
            try capture.expect("DBIRTH") { message in
                let names = message.payload.metrics.compactMap(\.name)
                return Set(names.map { $0.lowercased() }).count == names.count
            }
        },
        Requirement("message-flow-edge-node-ncmd-subscribe", "NCMD is subscribed to with QoS 1") { capture throws in
            let filter = capture.subscriptions.filter { $0.filter == "spBv1.0/Plant 1/NCMD/lab" }
            #expect(filter.map { $0.options & 3 } == [1, 1])
        },
        Requirement("message-flow-edge-node-birth-publish-connect", "Births follow CONNECT") { capture throws in
            #expect(capture.connects.count == 2)
            #expect(try capture.position(of: "NBIRTH") > 0)
        },
        Requirement("message-flow-edge-node-birth-publish-will-message", "CONNECT has a will") { capture throws in
            #expect(capture.connects.allSatisfy { $0.flags & 0x04 != 0 })
        },
        Requirement("message-flow-edge-node-birth-publish-will-message-topic", "The topic of the will is NDEATH's") {
            capture throws in
            #expect(capture.connects.allSatisfy { $0.willTopic == "spBv1.0/Plant 1/NDEATH/lab" })
        },
        Requirement("message-flow-edge-node-birth-publish-will-message-payload", "The will is a Sparkplug payload") {
            capture throws in
            #expect(try capture.wills.count == 2)
        },
        Requirement("message-flow-edge-node-birth-publish-will-message-payload-bdSeq", "bdSeq of the will is an Int64")
        {
            capture throws in
            #expect(try capture.wills.allSatisfy { $0.metrics.first?.datatype == 4 })
        },
        Requirement("message-flow-edge-node-birth-publish-will-message-qos", "The QoS of the will is 1") {
            capture throws in
            #expect(capture.connects.allSatisfy { $0.flags & 0x18 == 0x08 })
        },
        Requirement("message-flow-edge-node-birth-publish-will-message-will-retained", "The will has no retain flag") {
            capture throws in
            #expect(capture.connects.allSatisfy { $0.flags & 0x20 == 0 })
        },
        Requirement("message-flow-edge-node-birth-publish-phid-wait", "Births wait for the primary host") {
            capture throws in
            #expect(try capture.position(of: "NBIRTH") >= capture.marks.hostOnline)
        },
        Requirement("message-flow-edge-node-birth-publish-phid-wait-id", "Only the configured host counts") {
            capture throws in
            // The other host was online before.
            #expect(capture.publishes.allSatisfy { $0.position >= capture.marks.hostOnline })
            #expect(
                capture.subscriptions.filter { $0.filter.contains("STATE") }.map(\.filter)
                    == ["spBv1.0/STATE/scada", "spBv1.0/STATE/scada"]
            )
        },
        Requirement("message-flow-edge-node-birth-publish-phid-wait-online", "Only a host that says online counts") {
            capture throws in
            // The first message said offline.
            #expect(try capture.position(of: "NBIRTH") >= capture.marks.hostOnline)
        },
        Requirement("message-flow-edge-node-birth-publish-phid-wait-timestamp", "An older STATE message is ignored") {
            _ in
            #expect(HostWatch.after((true, 5), (false, 4)).isReady)
            #expect(!HostWatch.after((false, 5), (true, 4)).isReady)
            #expect(HostWatch.after((false, 5), (true, 5)).isReady)
        },
        Requirement("operational-behavior-edge-node-birth-sequence-wait", "The birth sequence waits for online") {
            capture throws in
            let second = try #require(capture.publishes.first { $0.connection == 1 })
            #expect(second.type == "NBIRTH" && second.position > capture.marks.hostOffline)
        },
        Requirement("message-flow-edge-node-birth-publish-nbirth-topic", "The topic of NBIRTH names the edge node") {
            try $0.expectTopic("NBIRTH", hasDevice: false)
        },
        Requirement("message-flow-edge-node-birth-publish-nbirth-payload", "NBIRTH is a Sparkplug payload") {
            capture throws in
            try capture.expect("NBIRTH") { $0.payload.metrics.count >= 4 }
        },
        Requirement("message-flow-edge-node-birth-publish-nbirth-payload-bdSeq", "bdSeq of NBIRTH is an Int64") {
            capture throws in
            try capture.expect("NBIRTH") { $0.payload.metrics.first { $0.name == "bdSeq" }?.datatype == 4 }
        },
        Requirement("message-flow-edge-node-birth-publish-nbirth-qos", "The QoS of NBIRTH is 0") { capture throws in
            try capture.expect("NBIRTH") { $0.qos == 0 }
        },
        Requirement("message-flow-edge-node-birth-publish-nbirth-retained", "NBIRTH has no retain flag") {
            capture throws in
            try capture.expect("NBIRTH") { !$0.isRetained }
        },
        Requirement("message-flow-edge-node-birth-publish-nbirth-payload-seq", "The number of NBIRTH is 0 to 255") {
            capture throws in
            try capture.expect("NBIRTH") { $0.payload.seq ?? 256 <= 255 }
        },
        Requirement("message-flow-edge-node-birth-publish-phid-offline", "A host that goes offline ends the session") {
            capture throws in
            let death = try capture.position(of: "NDEATH")
            #expect(death >= capture.marks.hostOffline)
            #expect(capture.disconnects.first?.position ?? 0 > death)
            #expect(capture.connects.count == 2)
        },
        Requirement("operational-behavior-edge-node-intentional-disconnect-ndeath", "NDEATH precedes a disconnect") {
            capture throws in
            #expect(try capture.messages("NDEATH").count == capture.disconnects.count)
        },
        Requirement("operational-behavior-edge-node-intentional-disconnect-packet", "DISCONNECT follows NDEATH at once")
        {
            capture throws in
            let deaths = try capture.messages("NDEATH").map(\.position)
            #expect(capture.disconnects.map(\.position) == deaths.map { $0 + 1 })
        },
        Requirement("operational-behavior-edge-node-termination-host-offline", "Offline of the host disconnects") {
            capture throws in
            #expect(capture.disconnects.first?.connection == 0)
        },
        Requirement("operational-behavior-edge-node-termination-host-offline-reconnect", "A new connection follows") {
            capture throws in
            #expect(capture.connects.count == 2)
        },
        Requirement("operational-behavior-edge-node-termination-host-offline-timestamp", "An older offline is ignored")
        { _ in
            #expect(!HostWatch.after((true, 5), (false, 4)).isOffline)
            #expect(HostWatch.after((true, 5), (false, 5)).isOffline)
        },
        Requirement(
            "operational-behavior-primary-application-state-with-multiple-servers-single-server",
            "There is one connection at a time"
        ) { capture throws in
            let first = capture.publishes.last { $0.connection == 0 }?.position ?? .max
            #expect(capture.publishes.filter { $0.connection == 1 }.allSatisfy { $0.position > first })
        },
        Requirement(
            "operational-behavior-primary-application-state-with-multiple-servers-walk",
            "Offline of the host moves to the next address"
        ) { capture throws in
            #expect(capture.connects.count == 2)
        },
    ]

    private static let deviceSession = [
        Requirement("message-flow-device-dcmd-subscribe", "DCMD is subscribed to with QoS 1") { capture throws in
            let filter = capture.subscriptions.filter { $0.filter == "spBv1.0/Plant 1/DCMD/lab/+" }
            #expect(filter.map { $0.options & 3 } == [1, 1])
        },
        Requirement("message-flow-device-birth-publish-nbirth-wait", "DBIRTH follows NBIRTH of the same session") {
            capture throws in
            for connection in 0...1 {
                let types = capture.publishes.filter { $0.connection == connection }.map(\.type)
                let (node, device) = (types.firstIndex(of: "NBIRTH"), types.firstIndex(of: "DBIRTH"))
                #expect(node == 0 && device == 1)
            }
        },
        Requirement("message-flow-device-birth-publish-dbirth-topic", "The topic of DBIRTH names the device") {
            try $0.expectTopic("DBIRTH", hasDevice: true)
        },
        Requirement("message-flow-device-birth-publish-dbirth-match-edge-node-topic", "DBIRTH names the node of NBIRTH")
        {
            capture throws in
            let node = try capture.messages("NBIRTH").map { [$0.levels[1], $0.levels[3]] }
            try capture.expect("DBIRTH") { [$0.levels[1], $0.levels[3]] == node.first }
        },
        Requirement("message-flow-device-birth-publish-dbirth-payload", "DBIRTH is a Sparkplug payload") {
            capture throws in
            try capture.expect("DBIRTH") { !$0.payload.metrics.isEmpty }
        },
        Requirement("message-flow-device-birth-publish-dbirth-qos", "The QoS of DBIRTH is 0") { capture throws in
            try capture.expect("DBIRTH") { $0.qos == 0 }
        },
        Requirement("message-flow-device-birth-publish-dbirth-retained", "DBIRTH has no retain flag") {
            capture throws in
            try capture.expect("DBIRTH") { !$0.isRetained }
        },
        Requirement("message-flow-device-birth-publish-dbirth-payload-seq", "The number of DBIRTH is the next one") {
            try $0.expectNextSeq("DBIRTH")
        },
        Requirement("operational-behavior-device-ddeath", "A lost device is a DDEATH") { capture throws in
            #expect(try capture.messages("DDEATH").first?.device == "strap")
            #expect(try capture.position(of: "DDEATH") >= capture.marks.strapLost)
        },
    ]

    private static let data = [
        Requirement("operational-behavior-data-publish-nbirth", "NBIRTH has all metrics of the session") {
            capture throws in
            let aliases = Set(try capture.births("NBIRTH").compactMap(\.alias))
            try capture.expect("NDATA") { aliases.isSuperset(of: $0.payload.metrics.compactMap(\.alias)) }
        },
        Requirement("operational-behavior-data-publish-nbirth-values", "NBIRTH has current values") { capture throws in
            let online = try capture.births("NBIRTH").filter { $0.name == "Gateway/Devices Online" }.map(\.value)
            #expect(online == [.long(1), .long(2), .long(1)])
        },
        Requirement("operational-behavior-data-publish-nbirth-change", "NDATA is published for changes only") {
            capture throws in
            #expect(try capture.messages("NDATA").flatMap(\.payload.metrics).map(\.value) == [.long(2), .long(1)])
        },
        Requirement("operational-behavior-data-publish-nbirth-order", "Values of the node are in order of time") {
            capture throws in
            for message in try capture.messages("NBIRTH") + capture.messages("NDATA") {
                #expect(message.payload.metrics.map { $0.timestamp ?? 0 }.isSorted)
            }
        },
        Requirement("operational-behavior-data-publish-dbirth", "DBIRTH has all metrics of the session") {
            capture throws in
            let births = try capture.messages("DBIRTH").filter { $0.device == "strap" }
            let names = ["heart_rate/rate", "heart_rate/energy", "contact/state", "intervals/rr"]
            #expect(births.allSatisfy { Set($0.payload.metrics.compactMap(\.name)) == Set(names) })
        },
        Requirement("operational-behavior-data-publish-dbirth-values", "DBIRTH has current values, or null") {
            capture throws in
            let births = try capture.messages("DBIRTH").filter { $0.device == "strap" }.map(\.payload.metrics)
            let rates = births.map { $0.first { $0.name == "heart_rate/rate" } }
            #expect(rates.first??.isNull == true)
            #expect(rates.last??.value == .double(299))
        },
        Requirement("operational-behavior-data-publish-dbirth-change", "Unchanged values can be left out") { _ in
            var bench = MachineBench(isByException: true)
            bench.connect(Devices.strap)
            bench.forgetMessages()
            for second in Int64(1)...3 { bench.commit(Devices.heartRate, .integer(60), .integer(second), at: second) }
            #expect(bench.messages.map(\.payload.metrics.count) == [2, 1, 1])
        },
        Requirement("operational-behavior-data-publish-dbirth-order", "Current values of devices are in order of time")
        {
            capture throws in
            for message in try capture.messages("DBIRTH") + capture.messages("DDATA") {
                let current = message.payload.metrics.filter { !$0.isHistorical }
                #expect(current.map { $0.timestamp ?? 0 }.isSorted)
            }
        },
    ]

    private static let commands = [
        Requirement("operational-behavior-data-commands-rebirth-name", "NBIRTH has the metric for rebirths") {
            capture throws in
            #expect(try capture.rebirthMetrics.count == 3)
        },
        Requirement("operational-behavior-data-commands-rebirth-name-aliases", "The metric for rebirths has no alias") {
            capture throws in
            #expect(try capture.rebirthMetrics.allSatisfy { $0.alias == nil })
        },
        Requirement("operational-behavior-data-commands-rebirth-datatype", "The metric for rebirths is a boolean") {
            capture throws in
            #expect(try capture.rebirthMetrics.allSatisfy { $0.datatype == 11 })
        },
        Requirement("operational-behavior-data-commands-rebirth-value", "The metric for rebirths is false") {
            capture throws in
            #expect(try capture.rebirthMetrics.allSatisfy { $0.value == .boolean(false) })
        },
        Requirement("operational-behavior-data-commands-ncmd-rebirth-name", "Another name asks for no rebirth") { _ in
            #expect(EdgeNode.isRebirth(.of("Node Control/Rebirth", .boolean(true))))
            #expect(!EdgeNode.isRebirth(.of("Node Control/Reboot", .boolean(true))))
        },
        Requirement("operational-behavior-data-commands-ncmd-rebirth-value", "Another value asks for no rebirth") { _ in
            #expect(!EdgeNode.isRebirth(.of("Node Control/Rebirth", .boolean(false))))
            #expect(!EdgeNode.isRebirth(.of("Node Control/Rebirth", .int(1))))
        },
        Requirement("operational-behavior-data-commands-ncmd-rebirth-verb", "Only NCMD asks for a rebirth") { _ in
            var bench = MachineBench()
            bench.connect(Devices.lamp)
            bench.forgetMessages()
            bench.command("spBv1.0/plant/DCMD/lab/lamp", SparkplugMetric(name: EdgeNode.rebirth, value: .boolean(true)))
            #expect(bench.messages.isEmpty)
        },
        Requirement("operational-behavior-data-commands-rebirth-action-1", "No data follows a request before NBIRTH") {
            capture throws in
            #expect(capture.publishes.first { $0.position >= capture.marks.rebirth }?.type == "NBIRTH")
        },
        Requirement("operational-behavior-data-commands-rebirth-action-2", "A rebirth has NBIRTH and all DBIRTHs") {
            capture throws in
            let messages = capture.publishes.filter { $0.position >= capture.marks.rebirth }.prefix(3)
            #expect(messages.map(\.type) == ["NBIRTH", "DBIRTH", "DBIRTH"])
            #expect(Set(messages.compactMap(\.device)) == ["strap", "lamp"])
        },
        Requirement("operational-behavior-data-commands-rebirth-action-3", "A rebirth repeats bdSeq") {
            capture throws in
            #expect(
                try capture.messages("NBIRTH").filter { $0.connection == 0 }.map { WireCapture.bdSeq($0.payload) } == [
                    0, 0,
                ]
            )
        },
        Requirement("operational-behavior-data-commands-ncmd-verb", "A command to the node is NCMD") { capture throws in
            #expect(try capture.messages("NBIRTH").count == 3)
        },
        Requirement("operational-behavior-data-commands-ncmd-metric-name", "Unknown metrics of NCMD change nothing") {
            _ in
            var bench = MachineBench()
            bench.forgetMessages()
            bench.command(
                MachineBench.topics.nodeCommand,
                SparkplugMetric(name: "Gateway/Devices Online", value: .long(9))
            )
            #expect(bench.messages.isEmpty)
        },
        Requirement("operational-behavior-data-commands-ncmd-metric-value", "A wrong value of NCMD changes nothing") {
            _ in
            var bench = MachineBench()
            bench.forgetMessages()
            bench.command(
                MachineBench.topics.nodeCommand,
                SparkplugMetric(name: EdgeNode.rebirth, value: .string("true"))
            )
            #expect(bench.messages.isEmpty)
        },
        Requirement("operational-behavior-data-commands-dcmd-verb", "A command to a device is DCMD") { capture throws in
            #expect(capture.controls.map(\.device) == ["lamp", "lamp"])
        },
        Requirement("operational-behavior-data-commands-dcmd-metric-name", "DCMD sets what DBIRTH names") {
            capture throws in
            // The scene is declared, but not allowed, so it is neither in DBIRTH nor set.
            #expect(try !capture.births("DBIRTH").contains { $0.name == "Device Control/scene" })
            #expect(capture.controls.map(\.control) == ["level", "flash"])
        },
        Requirement("operational-behavior-data-commands-dcmd-metric-value", "DCMD sets values of the right type") {
            capture throws in
            #expect(capture.controls.map(\.value) == [.integer(50), .trigger])
        },
    ]
}

extension SparkplugPayload {
    static func of(_ name: String, _ value: SparkplugMetric.Value) -> SparkplugPayload {
        SparkplugPayload(metrics: [SparkplugMetric(name: name, value: value)])
    }
}

extension HostWatch {
    /// The watch after STATE messages.
    fileprivate static func after(_ states: (isOnline: Bool, time: Int)...) -> HostWatch {
        var host = HostWatch(isConfigured: true)
        for state in states {
            let json = "{\"online\":\(state.isOnline),\"timestamp\":\(state.time)}"
            _ = host.receive(Array(json.utf8), at: Timestamp(microseconds: 0))
        }
        return host
    }
}

extension Array where Element: Comparable {
    var isSorted: Bool { zip(self, dropFirst()).allSatisfy { $0 <= $1 } }
}
