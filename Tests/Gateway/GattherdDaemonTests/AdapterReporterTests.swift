import GattherdGATT
import GattherdLog
import GattherdModel
import Testing

@testable import GattherdDaemon
@testable import GattherdMachines

@Suite struct AdapterReporterTests {
    private let status = SupervisorStatus()

    init() {
        status.set(LinkStatus(device: "strap", state: .waiting, since: Timestamp(microseconds: 1)))
    }

    private func makeReporter() -> AdapterReporter {
        let now: @Sendable () -> Timestamp = { Timestamp(microseconds: 1) }
        let recorder = EventRecorder(now: now)
        return AdapterReporter(LinkReporter(status: status, announcer: nil, recorder: recorder, log: .silent, now: now))
    }

    /// Returns the report of a full adapter.
    private func report(_ adapter: UInt64, waiting: [String]) -> AdapterReport {
        var report = AdapterReport(BluetoothAddress(value: adapter))
        (report.links, report.slots, report.waiting) = (3, 3, waiting)
        return report
    }

    @Test func `a device that no longer waits for a slot loses that reason`() {
        var reporter = makeReporter()
        reporter.publish(report(1, waiting: ["strap"]))
        #expect(status.link(of: "strap")?.reason == .adapterFull)
        reporter.publish(report(1, waiting: []))
        #expect(status.link(of: "strap")?.reason == nil)
        #expect(status.link(of: "strap")?.detail == nil)
    }

    @Test func `a device that waits for a slot of another adapter keeps that reason`() {
        var reporter = makeReporter()
        for adapter in [1, 2] as [UInt64] { reporter.publish(report(adapter, waiting: ["strap"])) }
        reporter.publish(report(1, waiting: []))
        #expect(status.link(of: "strap")?.reason == .adapterFull)
        reporter.publish(report(2, waiting: []))
        #expect(status.link(of: "strap")?.reason == nil)
    }

    @Test func `a device keeps a reason that it got while it waited`() {
        var reporter = makeReporter()
        reporter.publish(report(1, waiting: ["strap"]))
        var link = LinkStatus(device: "strap", state: .backingOff, since: Timestamp(microseconds: 2))
        link.reason = .connectFailed
        status.set(link)
        reporter.publish(report(1, waiting: []))
        #expect(status.link(of: "strap")?.reason == .connectFailed)
    }
}
