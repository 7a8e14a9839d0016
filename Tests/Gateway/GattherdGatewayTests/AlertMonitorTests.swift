import GattherdConfig
import GattherdHTTP
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdGateway

@Suite(.timeLimit(.minutes(1)))
struct AlertMonitorTests {
    /// The receivers of alerts.
    private final class Receiver: Sendable {
        let events = Locked<[String]>([])
        let published = Locked<[[ActiveAlert]]>([])

        func open(_ monitor: AlertMonitor) {
            monitor.open(
                record: { device, members in
                    let words = members.compactMap { member in
                        if case .text(let text)? = member.value { "\(member.key)=\(text)" } else { nil }
                    }
                    self.events.withLock { $0.append(([device] + words).joined(separator: " ")) }
                },
                publish: { alerts in self.published.withLock { $0.append(alerts) } }
            )
        }
    }

    private static let rule = AlertRule(name: "low", condition: .batteryBelow(15))

    private func batch(
        _ level: SampleValue,
        _ stream: String = "battery",
        at time: Timestamp = Timestamp(microseconds: 0)
    ) -> ReadingBatch {
        let metric = MetricDescriptor(name: "battery_level", unit: "%")
        let stream = StreamDefinition(device: "strap", profile: "battery", stream: stream, metrics: [metric])
        var batch = ReadingBatch()
        batch.samples = [Sample(metric: 0, value: level)]
        batch.readings = [Reading(stream: stream, time: time, source: .read, samples: 0..<1)]
        return batch
    }

    @Test func `a low battery is recorded and published, and so is its end`() {
        let monitor = AlertMonitor { Timestamp(microseconds: 1_000_000) }
        let receiver = Receiver()
        receiver.open(monitor)
        monitor.configure([Self.rule], devices: ["strap": "A"])
        for level in [50, 14, 13] { monitor.observe(batch(.integer(Int64(level)))) }
        let raised = ActiveAlert(
            alert: "low",
            device: "strap",
            address: "A",
            since: "1970-01-01T00:00:01.000000Z",
            detail: "battery_level is 14 %, below 15"
        )
        #expect(monitor.active == [raised])
        monitor.observe(batch(.null))
        #expect(monitor.active == [raised])
        monitor.observe(batch(.real(15)))
        #expect(monitor.active == [])
        let published = receiver.published.withLock { $0 }
        #expect(published == [[], [raised], []])
        let events = receiver.events.withLock { $0 }
        #expect(
            events == [
                "strap alert=low state=raised detail=battery_level is 14 %, below 15 address=A",
                "strap alert=low state=cleared",
            ]
        )
    }

    @Test func `a rule that is added begins with the newest values of the live status`() {
        let live = LiveStatus()
        live.observe(batch(.integer(14)))
        live.observe(batch(.text("none"), "other"))
        let monitor = AlertMonitor { Timestamp(microseconds: 0) }
        monitor.configure([], devices: ["strap": "A"])
        monitor.configure([Self.rule], devices: ["strap": "A"]) { live.newestAlertValues }
        #expect(monitor.active.map(\.detail) == ["battery_level is 14 %, below 15"])
    }

    @Test func `a change during the report of another one is reported after it`() {
        let monitor = AlertMonitor { Timestamp(microseconds: 0) }
        let published = Locked<[[String]]>([])
        let events = Locked<[String]>([])
        monitor.open(
            record: { _, members in
                for case (key: "state", value: .text(let state)?) in members { events.withLock { $0.append(state) } }
            },
            publish: { alerts in
                // Another thread would have the same effect.
                if !alerts.isEmpty { monitor.observe(batch(.integer(50))) }
                published.withLock { $0.append(alerts.map(\.alert)) }
            }
        )
        monitor.configure([Self.rule], devices: ["strap": "A"])
        monitor.observe(batch(.integer(10)))
        #expect(published.withLock { $0 } == [[], ["low"], []])
        #expect(events.withLock { $0 } == ["raised", "cleared"])
    }

    @Test func `a description without the stream clears its alert, but not that of a sensor`() {
        let monitor = AlertMonitor { Timestamp(microseconds: 0) }
        monitor.configure([Self.rule], devices: ["strap": "A"])
        monitor.observe(batch(.integer(14)))
        monitor.describe(DeviceDescription(device: "strap", address: "A", streams: [], isConnectable: false))
        #expect(monitor.active.map(\.alert) == ["low"])
        monitor.describe(DeviceDescription(device: "strap", address: "A", streams: []))
        #expect(monitor.active == [])
    }

    @Test func `a device with another address, or a sensor with other profiles, has none of the former alerts`() {
        let monitor = AlertMonitor { Timestamp(microseconds: 0) }
        func configure(_ address: String, _ stream: String) {
            let level = MetricDescriptor(name: "battery_level", unit: "%")
            let streams = [DeviceDescription.Stream(name: stream, metrics: [level])]
            let sensor = DeviceDescription(device: "strap", address: address, streams: streams, isConnectable: false)
            monitor.configure([Self.rule], devices: ["strap": address], sensors: [sensor])
        }
        configure("A", "battery")
        monitor.observe(batch(.integer(14)))
        configure("A", "battery")
        #expect(monitor.active.map(\.alert) == ["low"])
        configure("A", "other")
        #expect(monitor.active == [])
        monitor.observe(batch(.integer(14), "other"))
        configure("B", "other")
        #expect(monitor.active == [])
    }

    @Test func `an alert from late values of a former device is cleared when that device is removed`() {
        let monitor = AlertMonitor { Timestamp(microseconds: 0) }
        let receiver = Receiver()
        receiver.open(monitor)
        monitor.configure([Self.rule], devices: ["strap": "A"])
        monitor.configure([Self.rule], devices: ["strap": "B"])
        monitor.observe(batch(.integer(14)))
        #expect(monitor.active.map(\.alert) == ["low"])
        monitor.remove(device: "strap")
        #expect(monitor.active == [])
        let events = receiver.events.withLock { $0 }
        #expect(events.last == "strap alert=low state=cleared")
        #expect(events.count == 2)
    }

    @Test func `a lease of another gateway clears the alerts of the device`() {
        let monitor = AlertMonitor { Timestamp(microseconds: 0) }
        monitor.configure([Self.rule], devices: ["strap": "A"])
        monitor.observe(batch(.integer(14)))
        monitor.update(DeviceLease(device: "strap", state: "owner", owner: "lab", epoch: 1))
        #expect(monitor.active.map(\.alert) == ["low"])
        monitor.update(
            DeviceLease(device: "strap", state: "standby", owner: "attic", epoch: 2, isOwnedElsewhere: true)
        )
        #expect(monitor.active == [])
        monitor.observe(batch(.integer(14)))
        #expect(monitor.active == [])
    }

    @Test func `silence is noticed without a reading`() async throws {
        let monitor = AlertMonitor { Timestamp(microseconds: 0) }
        let receiver = Receiver()
        receiver.open(monitor)
        let task = Task { await monitor.run() }
        monitor.configure([AlertRule(name: "gone", condition: .silent(.milliseconds(1)))], devices: ["strap": "A"])
        try await eventually { receiver.published.withLock { $0.last?.map(\.alert) } == ["gone"] }
        task.cancel()
        await task.value
    }

    @Test func `an alert of an earlier run stays raised until all its streams are inside`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("history.db")
        let now = Timestamp(microseconds: 1_795_230_000_000_000)
        let options = HistoryOptions(path: path, consumers: [], clock: GatewayClock { now })
        let history = try await ReadingHistory.open(options, log: .silent)
        let rows: [(stream: String, level: Int64, age: Int)] = [
            ("left", 5, 0), ("right", 6, 0), ("spare", 90, 0), ("gone", 1, 3600),
        ]
        for row in rows {
            try await history.append(batch(.integer(row.level), row.stream, at: now.advanced(by: .seconds(-row.age))))
        }
        try await history.record([
            LifecycleEvent(
                time: now,
                device: "strap",
                kind: "alert",
                ["alert": .text("low"), "state": .text("raised")]
            )
        ])
        try await history.close()
        let monitor = AlertMonitor(InheritedAlerts([Self.rule], from: path)) { now }
        monitor.configure([Self.rule], devices: ["strap": "A"])
        for (stream, isActive) in [("spare", true), ("left", true), ("right", false)] {
            monitor.observe(batch(.integer(50), stream))
            #expect(monitor.active.isEmpty != isActive, "\(stream)")
        }
    }

    @Test func `an alert of an earlier run is cleared if the device has another address now`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("history.db")
        let now = Timestamp(microseconds: 1_795_230_000_000_000)
        let options = HistoryOptions(path: path, consumers: [], clock: GatewayClock { now })
        let history = try await ReadingHistory.open(options, log: .silent)
        try await history.record(DeviceRecord(device: "strap", address: "A", name: nil), seenAt: now)
        try await history.append(batch(.integer(5), at: now))
        let members: KeyValuePairs<String, SampleValue?> = ["alert": .text("low"), "state": .text("raised")]
        try await history.record([LifecycleEvent(time: now, device: "strap", kind: "alert", members)])
        try await history.close()
        let inherited = InheritedAlerts([Self.rule], from: path)
        for (address, isActive) in [("A", true), ("B", false)] {
            let monitor = AlertMonitor(inherited) { now }
            monitor.configure([Self.rule], devices: ["strap": address])
            #expect(monitor.active.isEmpty != isActive, "\(address)")
        }
    }

    @Test(arguments: [("A", ["strap alert=silent state=cleared"]), ("B", [])] as [(String, [String])])
    func `an alert of an earlier run belongs to the address of its event, not to the one heard last`(
        address: String,
        changes: [String]
    ) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("history.db")
        let now = Timestamp(microseconds: 1_795_230_000_000_000)
        let options = HistoryOptions(path: path, consumers: [], clock: GatewayClock { now })
        let history = try await ReadingHistory.open(options, log: .silent)
        try await history.record(DeviceRecord(device: "strap", address: "A", name: nil), seenAt: now)
        let members: KeyValuePairs<String, SampleValue?> = [
            "alert": .text("silent"), "state": .text("raised"), "address": .text(address),
        ]
        try await history.record([LifecycleEvent(time: now, device: "strap", kind: "alert", members)])
        try await history.close()
        let rule = AlertRule(name: "silent", condition: .silent(.seconds(3600)))
        let monitor = AlertMonitor(InheritedAlerts([rule], from: path)) { now }
        let receiver = Receiver()
        receiver.open(monitor)
        monitor.configure([rule], devices: ["strap": "B"])
        #expect(monitor.active.isEmpty != changes.isEmpty)
        let events = receiver.events.withLock { $0 }
        #expect(events == changes)
    }

    @Test(arguments: [[], [AlertRule(name: "other", condition: .batteryBelow(15))]] as [[AlertRule]])
    func `an alert of an earlier run without a rule is cleared at the start`(rules: [AlertRule]) async throws {
        let folder = try TemporaryFolder()
        var configuration = Configuration(gateway: "g", database: folder.file("history.db"))
        configuration.alerts = rules
        let now = Timestamp(microseconds: 1_795_230_000_000_000)
        let path = configuration.history.path.value
        let options = HistoryOptions(path: path, consumers: [], clock: GatewayClock { now })
        let history = try await ReadingHistory.open(options, log: .silent)
        try await history.record([
            LifecycleEvent(
                time: now,
                device: "strap",
                kind: "alert",
                ["alert": .text("low"), "state": .text("raised")]
            )
        ])
        try await history.close()
        let monitor = AlertMonitor(await Composition.raisedAlerts(configuration)) { now }
        let receiver = Receiver()
        receiver.open(monitor)
        monitor.configure(rules, devices: ["strap": "A"])
        let (events, published) = (receiver.events.withLock { $0 }, receiver.published.withLock { $0 })
        #expect(events == ["strap alert=low state=cleared"])
        #expect(published == [[]])
    }

    @Test func `an alert of an earlier run is known after thousands of later events`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("history.db")
        func event(_ second: Int64, _ alert: String, _ state: String) -> LifecycleEvent {
            LifecycleEvent(
                time: Timestamp(microseconds: 1_795_230_000_000_000 + second * 1_000_000),
                device: "strap",
                kind: "alert",
                ["alert": .text(alert), "state": .text(state)]
            )
        }
        let now = Timestamp(microseconds: 1_795_230_000_000_000)
        let options = HistoryOptions(path: path, consumers: [], clock: GatewayClock { now })
        let history = try await ReadingHistory.open(options, log: .silent)
        try await history.record([
            event(0, "gone", "raised"), LifecycleEvent(time: now, device: "strap", kind: "alert", detail: "no JSON"),
            event(9000, "cold", "raised"), event(0, "cold", "cleared"),
        ])
        try await history.record((1...4000).map { event($0, "low", $0.isMultiple(of: 2) ? "cleared" : "raised") })
        try await history.close()
        #expect(InheritedAlerts([Self.rule], from: path).alerts.map(\.alert) == ["gone"])
    }

    @Test func `the alerts of an earlier run are those whose last event raised them`() {
        func event(_ second: Int64, _ alert: String, _ state: String) -> LifecycleEvent {
            LifecycleEvent(
                time: Timestamp(microseconds: second * 1_000_000),
                device: "strap",
                kind: "alert",
                members: [("alert", .text(alert)), ("state", .text(state)), ("detail", .text("why"))]
            )
        }
        let events = [
            event(1, "low", "raised"), event(2, "gone", "raised"), event(3, "low", "cleared"),
            LifecycleEvent(time: Timestamp(microseconds: 4), device: "strap", kind: "alert", detail: "no JSON"),
        ]
        let active = ActiveAlert.raised(after: events)
        #expect(active.map(\.alert) == ["gone"])
        var inherited = InheritedAlerts()
        inherited.alerts = active
        let monitor = AlertMonitor(inherited) { Timestamp(microseconds: 0) }
        let receiver = Receiver()
        receiver.open(monitor)
        let rule = AlertRule(name: "gone", condition: .silent(.seconds(60)))
        monitor.configure([rule], devices: ["strap": "A"])
        #expect(monitor.active.map(\.since) == active.map(\.since))
        let recorded = receiver.events.withLock { $0 }
        #expect(recorded == [])
        monitor.observe(batch(.integer(1)))
        #expect(monitor.active.isEmpty)
    }
}
