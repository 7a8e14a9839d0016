import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdModel
import GattherdSync
import Testing

@Suite(.timeLimit(.minutes(1))) struct LoggedBackendTests {
    private final class Sink: NotificationSink {
        func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {}
    }

    private let base = FakeBackend()
    private let lines = Locked<[String]>([])
    private let level = RemoteCharacteristic(
        peripheral: FakeBackend.strap,
        service: 0x180F,
        uuid: 0x2A19,
        handle: "level",
        properties: []
    )

    private func backend(_ threshold: LogLevel, name: String? = "strap") -> LoggedBackend {
        let log = Log(threshold: threshold) { [lines] entry in
            let fields = entry.fields.filter { $0.key != "ms" && $0.key != "peripheral" }
            let text = fields.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
            lines.withLock { $0.append("\(entry.level) \(entry.message): \(text)") }
        }
        return LoggedBackend(base, log: log) { address in address == FakeBackend.strap.address ? name : nil }
    }

    @Test func `operations are performed by the other backend, and each is one line`() async throws {
        let backend = backend(.debug)
        base.know(FakeBackend.strap)
        base.setValue("level", [0x61])
        try await backend.connect(FakeBackend.strap, timeout: .seconds(1))
        _ = try await backend.services(of: FakeBackend.strap, timeout: .seconds(1))
        #expect(try await backend.read(level) == [0x61])
        try await backend.write([1, 2], to: level, withResponse: true)
        try await backend.subscribe(to: level, by: .signals, token: SubscriptionToken(1), sink: Sink())
        try await backend.unsubscribe(SubscriptionToken(1))
        try await backend.disconnect(FakeBackend.strap)
        #expect(base.value("level") == [1, 2] && base.subscriptionCount == 0)
        let operations = [
            "connect", "discover", "read characteristic=2a19 in 180f", "write characteristic=2a19 in 180f",
            "subscribe characteristic=2a19 in 180f", "disconnect",
        ]
        #expect(lines.withLock { $0 } == operations.map { "debug operation succeeded: device=strap operation=\($0)" })
    }

    @Test func `a failed operation is one line with the error, which is thrown unchanged`() async throws {
        let backend = backend(.debug, name: nil)
        let failure = BluetoothError(.att(0x0E), "no")
        base.fail("read", failure)
        #expect(await outcome { try await backend.read(level) }.error == failure)
        let fields = "operation=read characteristic=2a19 in 180f result=ATT error 0x0E error=no"
        #expect(lines.withLock { $0 } == ["debug operation failed: \(fields)"])
    }

    @Test func `bytes that are read or written are traced`() async throws {
        let backend = backend(.trace)
        base.setValue("level", [0x61])
        _ = try await backend.read(level)
        try await backend.write([1, 2], to: level, withResponse: false)
        #expect(
            lines.withLock { $0 }.filter { $0.hasPrefix("trace") } == [
                "trace bytes: device=strap operation=read bytes=61 characteristic=2a19 in 180f",
                "trace bytes: device=strap operation=write bytes=0102 characteristic=2a19 in 180f",
            ]
        )
    }
}
