import GattherdBluetooth
import GattherdDBus
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdBlueZ

@Suite(.timeLimit(.minutes(3))) struct SocketTests {
    /// A subscription by socket, with the other end.
    private func subscribed(_ stage: Stage) async throws -> SocketPair {
        let characteristic = try await stage.connected()
        let pair = SocketPair()
        await stage.fake.on("AcquireNotify") { _, call in try pair.answer(call) }
        try await stage.subscribe(characteristic, .socket)
        return pair
    }

    @Test func `packets come in order, empty ones too`() async throws {
        try await Stage.run { stage in
            let pair = try await subscribed(stage)
            let sent: [[UInt8]] = [[1], [], [2, 3], [], [], Array(repeating: 4, count: 512), []]
            for octets in sent { pair.send(octets) }
            #expect(await stage.sink.values(sent.count) == sent)
        }
    }

    @Test func `indications arrive as signals even if a socket was requested`() async throws {
        try await Stage.run { stage in
            let found = try await stage.connected()
            let indicated = RemoteCharacteristic(
                peripheral: found.peripheral,
                service: found.service,
                uuid: found.uuid,
                handle: found.handle,
                properties: .indicate
            )
            try await stage.subscribe(indicated, .socket)
            await stage.fake.notify([7])
            #expect(await stage.sink.values(1) == [[7]])
            #expect(await !stage.fake.asked.contains("AcquireNotify"))
        }
    }

    @Test func `signals are ignored while a socket delivers the notifications`() async throws {
        try await Stage.run { stage in
            let pair = try await subscribed(stage)
            await stage.fake.notify([9])
            _ = try await stage.central.read(try await stage.connected())
            pair.send([1])
            #expect(await stage.sink.values(1) == [[1]])
        }
    }

    @Test func `packets queued before the end of the link are delivered`() async throws {
        let loop = EventLoop(name: "test")
        try await Stage.run(loop: loop) { stage in
            let pair = try await subscribed(stage)
            let sent: [[UInt8]] = (0..<200).map { $0 % 3 == 0 ? [] : [UInt8($0)] }
            // The central's thread sees the end of the socket and that of the link together.
            await loop.standStill {
                for octets in sent { pair.send(octets) }
                pair.hangUp()
                await stage.fake.setConnected(false)
                await stage.fake.makeRoundTrip()
            }
            try await stage.events.expect(.disconnected(Stage.peripheral))
            #expect(stage.sink.values == sent)
            #expect(!stage.events.seen.contains(.subscriptionEnded(SubscriptionToken(1), Stage.peripheral)))
        }
        loop.stop()
    }

    @Test func `packets still in the socket at the signal of the link's end are delivered`() async throws {
        let loop = EventLoop(name: "test")
        try await Stage.run(loop: loop) { stage in
            let pair = try await subscribed(stage)
            let gate = SocketPair()
            // While the central's thread stands still, the link's end reaches it before the packets do.
            await withCheckedContinuation { standing in
                loop.execute {
                    standing.resume()
                    gate.waitForPacket()
                }
            }
            await stage.fake.setConnected(false)
            await stage.fake.makeRoundTrip()
            for number in 0..<100 { pair.send([UInt8(number)]) }
            gate.send([0])
            try await stage.events.expect(.disconnected(Stage.peripheral))
            #expect(stage.sink.values == (0..<100).map { [UInt8($0)] })
        }
        loop.stop()
    }

    @Test func `packets that were sent before a signal of the same device are delivered before it`() async throws {
        let loop = EventLoop(name: "test")
        try await Stage.run(loop: loop) { stage in
            let pair = try await subscribed(stage)
            let answering = try await stage.connected(Stage.control)
            let token = SubscriptionToken(2)
            try await stage.central.subscribe(to: answering, by: .signals, token: token, sink: stage.sink)
            // While the central's thread stands still, the signal reaches it before the packets do.
            await loop.standStill {
                await stage.fake.notify([9], at: FakeBlueZ.control)
                await stage.fake.makeRoundTrip()
                for number in 0..<100 { pair.send([UInt8(number)]) }
            }
            #expect(await stage.sink.values(101) == (0..<100).map { [UInt8($0)] } + [[9]])
        }
        loop.stop()
    }

    @Test func `the end of a socket while the link is up is published`() async throws {
        try await Stage.run { stage in
            let pair = try await subscribed(stage)
            pair.send([1])
            pair.hangUp()
            try await stage.events.expect(.subscriptionEnded(SubscriptionToken(1), Stage.peripheral))
            #expect(stage.sink.values == [[1]])
        }
    }

    /// Sends packets, each after the one before has arrived, until the central leaves them unread for a while.
    private func sendUntilPaused(_ pair: SocketPair, _ stage: Stage) async -> Int {
        var count = 0
        while await !stage.central.areSocketsPaused {
            pair.send([UInt8(truncatingIfNeeded: count)])
            count += 1
            _ = await stage.sink.values(count)
        }
        return count
    }

    @Test func `packets of a pause are delivered after it, in order`() async throws {
        try await Stage.run { stage in
            let pair = try await subscribed(stage)
            let first = await sendUntilPaused(pair, stage)
            for number in first..<first + 200 { pair.send([UInt8(truncatingIfNeeded: number)]) }
            let sent = (0..<first + 200).map { [UInt8(truncatingIfNeeded: $0)] }
            #expect(await stage.sink.values(sent.count) == sent)
        }
    }

    @Test func `single packets end the pauses`() async throws {
        try await Stage.run { stage in
            let pair = try await subscribed(stage)
            var count = await sendUntilPaused(pair, stage)
            while await stage.central.areSocketsPaused {
                pair.send([1])
                count += 1
                _ = await stage.sink.values(count)
            }
        }
    }

    @Test func `packets and the end of the link during a pause are reported`() async throws {
        try await Stage.run { stage in
            let pair = try await subscribed(stage)
            let count = await sendUntilPaused(pair, stage)
            pair.send([77])
            pair.hangUp()
            await stage.fake.setConnected(false)
            try await stage.events.expect(.disconnected(Stage.peripheral))
            #expect(stage.sink.values.count == count + 1)
            #expect(stage.sink.values.last == [77])
        }
    }

    @Test func `unsubscribing closes the socket without StopNotify`() async throws {
        try await Stage.run { stage in
            let pair = try await subscribed(stage)
            try await stage.central.unsubscribe(SubscriptionToken(1))
            pair.waitForClose()
            #expect(await !stage.fake.asked.contains("StopNotify"))
        }
    }

    @Test func `AcquireNotify without an answer times out and is not repeated`() async throws {
        var limits = BlueZCentral.Limits()
        limits.attribute = .milliseconds(50)
        try await Stage.run(limits: limits) { stage in
            let characteristic = try await stage.connected()
            await stage.fake.hang("AcquireNotify")
            let result = await outcome { () throws(BluetoothError) in
                try await stage.central.subscribe(
                    to: characteristic,
                    by: .socket,
                    token: SubscriptionToken(1),
                    sink: stage.sink
                )
            }
            #expect(result.kind == .timedOut)
            let pair = SocketPair()
            let end = pair.makeDescriptor()
            try await stage.fake.release(.fileDescriptor(end), .uint16(23))
            try await stage.central.unsubscribe(SubscriptionToken(1))
            #expect(await !stage.fake.asked.contains("StopNotify"))
        }
    }

    @Test func `waiting for a socket ends with the link`() async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.on("AcquireNotify") { fake, call in
                fake.setConnected(false)
                try call.reply(.fileDescriptor(SocketPair().makeDescriptor()), .uint16(23))
            }
            let result = await outcome { () throws(BluetoothError) in
                try await stage.central.subscribe(
                    to: characteristic,
                    by: .socket,
                    token: SubscriptionToken(1),
                    sink: stage.sink
                )
            }
            #expect(result.kind == .notConnected)
        }
    }

    @Test(arguments: [[], [DBusValue.string("no socket")]])
    func `an answer without a socket is an error`(answer: [DBusValue]) async throws {
        try await Stage.run { stage in
            let characteristic = try await stage.connected()
            await stage.fake.on("AcquireNotify") { _, call in try call.reply(answer) }
            let result = await outcome { () throws(BluetoothError) in
                try await stage.central.subscribe(
                    to: characteristic,
                    by: .socket,
                    token: SubscriptionToken(1),
                    sink: stage.sink
                )
            }
            #expect(result.kind == .other)
        }
    }

    @Test func `bluetoothd sees the sockets closed before the client leaves`() async throws {
        try await Stage.run { stage in
            let pair = try await subscribed(stage)
            await stage.fake.on("Introspect") { _, call in
                pair.waitForClose()
                try call.reply()
            }
            await stage.central.close()
            #expect(await stage.fake.asked.last == "Introspect")
        }
    }
}
