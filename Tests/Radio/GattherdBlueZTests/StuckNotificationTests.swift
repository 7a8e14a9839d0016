import GattherdBluetooth
import GattherdDBus
import Testing

@testable import GattherdBlueZ

/// Requests of sockets that bluetoothd never answers: BlueZ up to 5.83 keeps their characteristics acquired.
@Suite(.timeLimit(.minutes(3))) struct StuckNotificationTests {
    private func subscribe(
        _ central: BlueZCentral,
        _ sink: RecordingSink,
        _ characteristic: RemoteCharacteristic,
        _ path: NotificationPath
    ) async -> BluetoothError.Kind? {
        await outcome { () throws(BluetoothError) in
            try await central.subscribe(to: characteristic, by: path, token: SubscriptionToken(1), sink: sink)
        }.kind
    }

    /// Returns the kind of the error of a subscription on a new link; `nil` if it succeeds.
    private func resubscribe(_ stage: Stage, _ path: NotificationPath = .socket) async throws -> BluetoothError.Kind? {
        await subscribe(stage.central, stage.sink, try await stage.connected(), path)
    }

    private func expect(
        _ refusal: BluetoothError.Kind?,
        _ stage: Stage,
        _ path: NotificationPath = .socket,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let answer = try await resubscribe(stage, path)
        #expect(answer == refusal, sourceLocation: sourceLocation)
    }

    /// Subscribes, and ends the link before bluetoothd has answered the call of `member`.
    private func interrupt(_ member: String, _ path: NotificationPath, _ stage: Stage) async throws {
        let characteristic = try await stage.connected()
        await stage.fake.hang(member)
        let (central, sink) = (stage.central, stage.sink)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { _ = await subscribe(central, sink, characteristic, path) }
            await stage.fake.waitForCall(member)
            await stage.fake.setConnected(false)
            group.cancelAll()
        }
        try await stage.events.expect(.disconnected(Stage.peripheral))
    }

    /// The number of characteristics with unanswered requests.
    private func requestCount(_ stage: Stage) async -> Int { await stage.central.entryCounts[1] }

    private func refuseSubscriptions(_ stage: Stage) async {
        for member in ["AcquireNotify", "StartNotify"] {
            await stage.fake.fail(member, "NotPermitted", "Notify acquired")
        }
    }

    @Test(arguments: [NotificationPath.socket, .signals])
    func `a subscription after an unanswered request has an error of its own`(path: NotificationPath) async throws {
        try await Stage.run { stage in
            try await interrupt("AcquireNotify", .socket, stage)
            await refuseSubscriptions(stage)
            try await expect(.notificationsStuck, stage, path)
        }
    }

    @Test func `a characteristic that another program has acquired is busy`() async throws {
        try await Stage.run { stage in
            await refuseSubscriptions(stage)
            try await expect(.busy, stage)
        }
    }

    @Test func `StopNotify is not called for a characteristic with an unanswered request`() async throws {
        try await Stage.run { stage in
            try await interrupt("AcquireNotify", .socket, stage)
            try await interrupt("StartNotify", .signals, stage)
            // This call would come after it.
            try await stage.central.stopDiscovery(on: Stage.adapter)
            #expect(await !stage.fake.asked.contains("StopNotify"))
        }
    }

    @Test func `a late answer ends the state`() async throws {
        try await Stage.run { stage in
            try await interrupt("AcquireNotify", .socket, stage)
            let failure = DBusError(name: "org.bluez.Error.Failed", message: "Operation failed")
            try await stage.fake.answerHeldCalls { try $0.fail(failure) }
            await refuseSubscriptions(stage)
            try await expect(.busy, stage)
        }
    }

    @Test func `a subscription that succeeds ends the state`() async throws {
        try await Stage.run { stage in
            try await interrupt("AcquireNotify", .socket, stage)
            let pair = SocketPair()
            await stage.fake.on("AcquireNotify") { _, call in try pair.answer(call) }
            try await expect(nil, stage)
            await stage.fake.setConnected(false)
            try await stage.events.expect(.disconnected(Stage.peripheral))
            await refuseSubscriptions(stage)
            try await expect(.busy, stage)
        }
    }

    @Test func `the removal of the characteristic ends the state`() async throws {
        try await Stage.run { stage in
            try await interrupt("AcquireNotify", .socket, stage)
            await stage.fake.remove(FakeBlueZ.measurement)
            await refuseSubscriptions(stage)
            try await expect(.busy, stage)
        }
    }

    @Test func `the removal of the peripheral ends the state`() async throws {
        try await Stage.run { stage in
            try await interrupt("AcquireNotify", .socket, stage)
            #expect(await requestCount(stage) == 1)
            await stage.fake.remove(FakeBlueZ.device)
            try await stage.events.expect(.peripheralRemoved(Stage.peripheral))
            #expect(await requestCount(stage) == 0)
        }
    }
}
