import GattherdLog
import GattherdSync
import TestKit
import Testing

/// The lines of a device's operations at `debug`, and of its values at `trace`.
@Suite(.timeLimit(.minutes(1))) struct LoggedOperationTests {
    /// Runs a device that notifies until a condition on the log's lines holds; returns the lines.
    private func lines(
        _ threshold: LogLevel,
        until isDone: @Sendable ([String]) -> Bool
    ) async throws -> [String] {
        let lines = Locked<[String]>([])
        var setup = SimulatedSupervisor.Setup(devices: 1)
        setup.rate = 20
        setup.log = Log(threshold: threshold) { entry in
            let fields = entry.fields.filter { $0.key != "ms" && $0.key != "bytes" }
            let text = fields.map { "\($0.key)=\($0.value)" }.joined(separator: " ")
            lines.withLock { $0.append("\(entry.level) \(entry.message): \(text)") }
        }
        try await SimulatedSupervisor.run(setup) { _ in
            try await eventually { isDone(lines.withLock { $0 }) }
        }
        return lines.withLock { $0 }
    }

    @Test func `each operation of a device is one line with the device's name`() async throws {
        let subscribed = "operation=subscribe characteristic=2a37 in 180d"
        let lines = try await lines(.debug) { lines in lines.contains { $0.contains("operation=subscribe") } }
        let device = "debug operation succeeded: device=strap-1 peripheral=C0:FF:EE:00:00:01"
        for operation in ["operation=connect", "operation=discover", subscribed] {
            #expect(lines.count { $0 == "\(device) \(operation)" } == 1)
        }
        #expect(!lines.contains { $0.hasPrefix("trace") })
    }

    @Test func `each received value is a line at trace`() async throws {
        let value = "trace value: device=strap-1 stream=pulse source=notify"
        let lines = try await lines(.trace) { $0.contains(value) }
        #expect(lines.contains(value))
    }
}
