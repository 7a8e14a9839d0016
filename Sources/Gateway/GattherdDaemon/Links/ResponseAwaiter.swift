import GattherdBluetooth
import GattherdModel
import GattherdSync

/// Waits for the device's responses to writes on one connection.
final class ResponseAwaiter: NotificationSink {
    private struct Listener: Sendable {
        let characteristic: String
        let receive: @Sendable ([UInt8]) -> Void
        let finish: @Sendable () -> Void
    }

    private struct Shared: Sendable {
        var characteristics: [SubscriptionToken: String] = [:]
        var listeners: [Int: Listener] = [:]
        var nextListener = 1
        var isClosed = false
    }

    private let shared = Locked(Shared())

    /// Routes the values of `token` as responses of `characteristic`.
    func bind(_ token: SubscriptionToken, to characteristic: RemoteCharacteristic) {
        shared.withLock { $0.characteristics[token] = characteristic.handle }
    }

    func receive(_ octets: Span<UInt8>, for token: SubscriptionToken, at time: Timestamp) {
        var answer: [UInt8] = []
        for index in octets.indices { answer.append(octets[index]) }
        shared.withLock { shared in
            guard let characteristic = shared.characteristics[token] else { return }
            for listener in shared.listeners.values where listener.characteristic == characteristic {
                listener.receive(answer)
            }
        }
    }

    /// Writes and waits for the response of the device.
    ///
    /// - Returns: The response; `nil` after a timeout or the end of the link.
    /// - Throws: The error of `write`.
    func response(
        to rule: ResponseRule,
        of characteristic: RemoteCharacteristic,
        after write: () async throws(BluetoothError) -> Void
    ) async throws(BluetoothError) -> ResponseRule.Outcome? {
        let (number, answers) = listen(to: characteristic)
        defer { remove(number) }
        try await write()
        return await withTaskGroup(of: ResponseRule.Outcome?.self) { group in
            group.addTask {
                for await answer in answers {
                    if let outcome = rule.outcome(of: answer) { return outcome }
                }
                return nil
            }
            group.addTask {
                try? await Task.sleep(for: rule.timeout, clock: .loop)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
    }

    /// Ends all waiting: no more responses arrive.
    func close() {
        let listeners = shared.withLock { shared in
            shared.isClosed = true
            return shared.listeners.values.map(\.finish)
        }
        for finish in listeners { finish() }
    }

    private func listen(to characteristic: RemoteCharacteristic) -> (Int, AsyncStream<[UInt8]>) {
        let (stream, answers) = AsyncStream.makeStream(of: [UInt8].self, bufferingPolicy: .bufferingNewest(64))
        let number = listen(to: characteristic, finish: { answers.finish() }) { answers.yield($0) }
        return (number, stream)
    }

    /// Calls `receive` with each value of the characteristic, until ``remove(_:)``.
    func listen(
        to characteristic: RemoteCharacteristic,
        finish: @escaping @Sendable () -> Void = {},
        receive: @escaping @Sendable ([UInt8]) -> Void
    ) -> Int {
        shared.withLock { shared in
            defer { shared.nextListener += 1 }
            let listener = Listener(characteristic: characteristic.handle, receive: receive, finish: finish)
            shared.listeners[shared.nextListener] = listener
            if shared.isClosed { finish() }
            return shared.nextListener
        }
    }

    func remove(_ number: Int) {
        _ = shared.withLock { $0.listeners.removeValue(forKey: number) }
    }
}

/// The expected response to a control's or task's write, and its characteristic.
struct ResponseExpectation: Sendable {
    let awaiter: ResponseAwaiter
    let rule: ResponseRule
    let remote: RemoteCharacteristic
}
