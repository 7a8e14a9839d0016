/// Runs `body` for at most `limit`, then cancels it.
public func wait(atMost limit: Duration, for body: @escaping @Sendable () async -> Void) async {
    await withTaskGroup { group in
        group.addTask { await body() }
        group.addTask { try? await Task.sleep(for: limit, clock: .loop) }
        await group.next()
        group.cancelAll()
    }
}
