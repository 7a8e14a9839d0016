import GattherdBluetooth
import GattherdLog
import GattherdSync
import TestKit
import Testing

@Suite(.timeLimit(.minutes(1))) struct OperationLogTests {
    /// Runs `body` with a ready strap; returns the log lines as text, without durations.
    private func lines(_ threshold: LogLevel, _ body: (Bench, Peripheral) async throws -> Void) async throws -> [String]
    {
        let lines = LatestValue<[String]>([])
        let log = Log(threshold: threshold) { entry in
            let fields = entry.fields.filter { $0.key != "ms" && $0.key != "peripheral" }
            let duration = entry.fields.contains { $0.key == "ms" && Double($0.value) != nil } ? " in time" : ""
            let text = fields.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
            lines.update { $0.append("\(entry.level) \(entry.message): \(text)\(duration)") }
        }
        let backend = FakeBackend()
        let central = Central(backend: backend, log: log)
        try await central.run { central in
            try await central.waitUntilReady()
            let bench = Bench(backend: backend, central: central)
            try await body(bench, try await bench.connected())
        }
        return lines.state
    }

    @Test func `each operation is one line with its duration and result`() async throws {
        let lines = try await lines(.debug) { bench, strap in
            _ = try await strap.readValue(for: 0x2A19)
            bench.backend.fail("read", BluetoothError(.att(0x0E), "no"))
            _ = await outcome { try await strap.readValue(for: 0x2A19) }
            try await strap.write(UInt8(1), to: 0x2A19)
        }
        #expect(lines.contains("debug operation succeeded: operation=connect in time"))
        #expect(lines.contains("info connection changed: state=ready"))
        let reads = lines.filter { $0.contains("2a19") }
        #expect(
            reads == [
                "debug operation succeeded: operation=read characteristic=2a19 in time",
                "debug operation failed: operation=read characteristic=2a19 result=ATT error 0x0E error=no in time",
                "debug operation succeeded: operation=write characteristic=2a19 in time",
            ]
        )
    }

    @Test func `operations without a characteristic and refused operations are logged too`() async throws {
        let lines = try await lines(.debug) { bench, strap in
            try await strap.pair()
            _ = try await strap.readRSSI()
            _ = try await bench.central.bonds()
            try await strap.disconnect()
            _ = await outcome { try await strap.readValue(for: 0x2A19) }
            try await bench.central.forget(strap)
        }
        for operation in ["pair", "readRSSI", "forget"] {
            #expect(lines.contains("debug operation succeeded: operation=\(operation) in time"))
        }
        #expect(lines.contains { $0.hasPrefix("debug operation succeeded: operation=listBonds") })
        #expect(lines.contains { $0.contains("failed: operation=read characteristic=2a19 result=not connected") })
    }

    @Test func `bytes are traced`() async throws {
        let lines = try await lines(.trace) { bench, strap in
            bench.backend.setValue("level", [0x61])
            _ = try await strap.readValue(for: 0x2A19)
            try await strap.write([1, 2] as [UInt8], to: 0x2A19)
            try await strap.setNotifyValue(true, for: 0x2A37)
            bench.backend.notify("measurement", [0, 0x3C])
        }
        #expect(
            lines.filter { $0.hasPrefix("trace") } == [
                "trace bytes: operation=read bytes=61 characteristic=2a19",
                "trace bytes: operation=write bytes=0102 characteristic=2a19",
                "trace bytes: operation=notification bytes=003c characteristic=2a37 in 180d",
            ]
        )
    }

    @Test func `a silent log has no lines of operations`() async throws {
        let lines = try await lines(.warning) { _, strap in _ = try await strap.readValue(for: 0x2A19) }
        #expect(lines.isEmpty)
    }
}
