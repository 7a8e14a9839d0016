/// Waits for `body` to end, for at most `limit`; then it is cancelled.
public func wait(atMost limit: Duration, for body: @escaping @Sendable () async -> Void) async {
    await withTaskGroup { group in
        group.addTask { await body() }
        group.addTask { try? await Task.sleep(for: limit, clock: .loop) }
        await group.next()
        group.cancelAll()
    }
}
