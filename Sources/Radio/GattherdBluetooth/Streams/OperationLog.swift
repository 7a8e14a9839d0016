import GattherdGATT
import GattherdLog

/// The log lines of operations: one at `debug` for each, with its duration and result; bytes at `trace`.
struct OperationLog: Sendable {
    private let log: Log

    /// Creates the log of one peripheral's operations.
    init(_ log: Log, _ address: BluetoothAddress) {
        self.log = log.with(LogField("peripheral", address))
    }

    /// Creates the log of a central's operations.
    init(_ log: Log) {
        self.log = log
    }

    /// Writes the result of an operation that began at `start`.
    func finished(
        _ operation: BluetoothError.Operation,
        _ subject: CharacteristicID?,
        since start: ContinuousClock.Instant,
        _ error: BluetoothError?
    ) {
        func fields() -> [LogField] {
            let elapsed = start.duration(to: .now) / .milliseconds(1)
            let milliseconds = (elapsed * 1000).rounded() / 1000
            return [LogField("operation", operation.rawValue), LogField("ms", milliseconds)]
                + (subject.map { [LogField("characteristic", $0)] } ?? [])
        }
        guard let error else { return log(.debug, "operation succeeded", fields()) }
        log(.debug, "operation failed", fields() + [LogField("result", error.kind), LogField("error", error.detail)])
    }

    /// Runs an operation that has no queue, and writes its result.
    func record<Value>(
        _ operation: BluetoothError.Operation,
        _ body: () async throws(BluetoothError) -> Value
    ) async throws(BluetoothError) -> Value {
        let start = ContinuousClock.now
        do throws(BluetoothError) {
            let value = try await body()
            finished(operation, nil, since: start, nil)
            return value
        } catch {
            finished(operation, nil, since: start, error)
            throw error.during(operation)
        }
    }

    func bytes(_ operation: BluetoothError.Operation, _ subject: CharacteristicID?, _ octets: [UInt8]) {
        log(
            .trace,
            "bytes",
            [LogField("operation", operation.rawValue), LogField("bytes", Hexadecimal.text(octets.span))]
                + (subject.map { [LogField("characteristic", $0)] } ?? [])
        )
    }
}
