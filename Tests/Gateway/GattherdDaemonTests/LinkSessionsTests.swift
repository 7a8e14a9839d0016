import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdModel
import Testing

@testable import GattherdDaemon

@Suite(.timeLimit(.minutes(1))) struct LinkSessionsTests {
    private let device = SupervisedDevice(name: "strap", address: BluetoothAddress(value: 7))

    private func sessions() -> LinkSessions {
        let now: @Sendable () -> Timestamp = { Timestamp(microseconds: 1) }
        let context = LinkSessionContext(
            central: FakeCentral(),
            intake: Intake(),
            configuredDevices: ConfiguredDevices([device], profiles: []),
            store: FakeStore(),
            recorder: EventRecorder(now: now),
            settings: Supervisor.Settings(),
            counters: RecoveryCounters(),
            log: .silent,
            now: now
        )
        var sessions = LinkSessions(context, log: .silent)
        sessions.setLink(PeripheralID(adapter: BluetoothAddress(value: 1), address: device.address), of: device.name)
        return sessions
    }

    @Test func `a session that was replaced or closed assigns no profiles`() async throws {
        var sessions = sessions()
        let assignment = try ProfileAssignment(candidates: [], areChosen: false, table: [])
        await withDiscardingTaskGroup { group in
            sessions.open(device, ticket: 1, in: &group) { _ in }
            #expect(sessions.prepared(assignment, of: "strap", ticket: 1) == true)
            sessions.replace(device, ticket: 2, in: &group) { _ in }
            #expect(sessions.prepared(assignment, of: "strap", ticket: 1) == false)
            #expect(sessions.prepared(assignment, of: "strap", ticket: 2) == true)
            sessions.close("strap")
            #expect(sessions.prepared(assignment, of: "strap", ticket: 2) == false)
        }
        #expect(sessions.assignment(of: "strap") != nil)
        sessions.remove("strap")
        #expect(sessions.assignment(of: "strap") == nil)
        #expect(sessions.link(of: "strap") == nil)
    }

    @Test func `closing all sessions names their devices`() async {
        var sessions = sessions()
        await withDiscardingTaskGroup { group in
            sessions.open(device, ticket: 1, in: &group) { _ in }
            #expect(sessions.closeAll() == ["strap"])
            #expect(sessions.closeAll().isEmpty)
        }
    }
}
