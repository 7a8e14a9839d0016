import GattherdSync
import TestKit
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) struct NotificationTests {
    private static let control: CharacteristicID = 0x2A39

    @Test func `notifications come typed and in order`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let beats = try await strap.notifications(of: UInt16.self, from: 0x2A37)
            for beat in 0..<100 as Range<UInt16> { bench.backend.notify("measurement", beat.octets()) }
            var seen: [UInt16] = []
            for try await beat in beats.prefix(100) { seen.append(beat) }
            #expect(seen == Array(0..<100))
        }
    }

    @Test func `any number of sequences share one subscription, and the last one ends it`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            var first: Notifications<UInt8>? = try await strap.notifications(from: 0x2A37)
            var second: Notifications<[UInt8]>? = try await strap.notifications(from: 0x2A37)
            #expect(strap.notifyingCharacteristics.map(\.uuid) == [0x2A37])
            bench.backend.notify("measurement", [7])
            var numbers = first?.makeAsyncIterator()
            #expect(try await numbers?.next() == 7)
            (first, numbers) = (nil, nil)
            // Operations come in the order of the calls: this one after any unsubscribing.
            try await strap.write(UInt8(0), to: 0x2A19)
            #expect(!bench.backend.asked.state.contains("unsubscribe measurement"))
            var octets = second?.makeAsyncIterator()
            #expect(try await octets?.next() == [7])
            (second, octets) = (nil, nil)
            await bench.backend.waitUntilAsked("unsubscribe measurement")
            #expect(bench.backend.asked.state.filter { $0 == "subscribe measurement" }.count == 1)
            #expect(strap.notifyingCharacteristics.isEmpty)
        }
    }

    @Test func `a value that comes before the subscription is answered is not lost`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.greet(from: "measurement", with: [9])
            var values = try await strap.notifications(of: UInt8.self, from: 0x2A37).makeAsyncIterator()
            #expect(bench.backend.subscriptionCount == 1)
            bench.backend.notify("measurement", [1])
            #expect(try await values.next() == 9)
            #expect(try await values.next() == 1)
        }
    }

    @Test func `leaving the loop, stopping and cancelling end the subscription`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.notify("measurement", [1])
            async let left: Void = {
                for try await _ in try await strap.notifications(of: UInt8.self, from: 0x2A37) { break }
            }()
            await bench.backend.waitUntilAsked("subscribe measurement")
            try await eventually { bench.backend.subscriptionCount > 0 }
            bench.backend.notify("measurement", [1])
            try await left
            await bench.backend.waitUntilAsked("unsubscribe measurement")

            let values = try await strap.notifications(of: UInt8.self, from: 0x2A37)
            values.stop()
            for try await _ in values { Issue.record("a value after the end") }
            await bench.backend.waitUntilAsked("unsubscribe measurement", times: 2)

            await withTaskGroup(of: Void.self) { group in
                group.addTask {
                    guard let values = try? await strap.notifications(of: UInt8.self, from: 0x2A37) else { return }
                    do { for try await _ in values {} } catch { Issue.record("\(error)") }
                }
                await bench.backend.waitUntilAsked("subscribe measurement", times: 3)
                _ = try? await eventually { bench.backend.subscriptionCount > 0 }
                group.cancelAll()
            }
            await bench.backend.waitUntilAsked("unsubscribe measurement", times: 3)
        }
    }

    @Test func `a link that is lost ends a sequence with an error, a request ends it without`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let lost = try await strap.notifications(of: UInt8.self, from: 0x2A37)
            bench.backend.notify("measurement", [1])
            bench.backend.drop(FakeBackend.strap)
            var values: [UInt8] = []
            await #expect(throws: BluetoothError.self) { for try await value in lost { values.append(value) } }
            #expect(values == [1])
            try await strap.connect()
            let ended = try await strap.notifications(of: UInt8.self, from: 0x2A37)
            try await strap.disconnect()
            for try await _ in ended { Issue.record("a value without a link") }
        }
    }

    @Test(arguments: [true, false])
    func `a subscription that begins after the end of its link is not joined on the next one`(
        isLost: Bool
    ) async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let link = try strap.usableLink(.subscribe)
            if isLost {
                link.drop(upTo: .max, bench.central)
            } else {
                link.move(to: .disconnecting, bench.central)
                link.endUse(.requested)
            }
            // The operation had its turn before the end.
            let subscriber = Subscriber(central: bench.central, link: link)
            let measurement = try #require(Bench.table.first?.characteristics.first)
            let result = await outcome { try await subscriber.listen(to: measurement, .bufferingOldest(1)) }
            #expect(result.error?.kind == .notConnected)
            #expect(strap.notifyingCharacteristics.isEmpty)
            try await strap.connect()
            let beats = try await strap.notifications(of: UInt8.self, from: 0x2A37)
            bench.backend.notify("measurement", [7])
            for try await beat in beats.prefix(1) { #expect(beat == 7) }
        }
    }

    @Test func `a cancelled loop gets no more of the values that wait`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let updates = strap.valueUpdates()
            let levels = try await strap.notifications(of: [UInt8].self, from: 0x2A37)
            for value in 1...100 as ClosedRange<UInt8> { bench.backend.notify("measurement", [value]) }
            let counts = Task {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                var count = 0
                for await _ in updates { count += 1 }
                for try await _ in levels { count += 1 }
                return count
            }
            #expect(try await counts.value == 0)
        }
    }

    @Test func `the end of a subscription is not cancelled with the operations`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let beats = try await strap.notifications(of: [UInt8].self, from: 0x2A37)
            bench.backend.hang("read")
            async let read = outcome { try await strap.readValue(for: 0x2A19) }
            await bench.backend.waitUntilAsked("read level")
            beats.stop()
            try await eventually { bench.central.link(strap.id)?.operations.count == 2 }
            strap.cancelAllOperations()
            _ = await read
            await bench.backend.waitUntilAsked("unsubscribe measurement")
        }
    }

    @Test func `a subscription that the platform ends, or refuses, is an error`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let ended = try await strap.notifications(of: UInt8.self, from: 0x2A37)
            bench.backend.endSubscription("measurement")
            await #expect(throws: BluetoothError.self) { for try await _ in ended {} }
            bench.backend.fail("subscribe", BluetoothError(.authentication, "pair first"))
            let refused = await outcome {
                try await strap.notifications(of: UInt8.self, from: 0x2A37)
            }
            #expect(refused.error?.kind == .authentication)
            #expect(refused.error?.operation == .subscribe)
            _ = try await strap.notifications(of: UInt8.self, from: 0x2A37)
        }
    }

    @Test(arguments: [
        (BufferingPolicy.bufferingOldest(3), [0, 1, 2] as [UInt8]), (.bufferingNewest(3), [7, 8, 9]),
    ])
    func `values not consumed in time are dropped by policy and counted`(
        policy: BufferingPolicy,
        kept: [UInt8]
    ) async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let values = try await strap.notifications(of: UInt8.self, from: 0x2A37, buffering: policy)
            for value in 0..<10 as Range<UInt8> { bench.backend.notify("measurement", [value]) }
            #expect(values.droppedCount == 7)
            var seen: [UInt8] = []
            for try await value in values.prefix(3) { seen.append(value) }
            #expect(seen == kept)
        }
    }

    @Test func `invalid bytes are an error, and the next value follows`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let values = try await strap.notifications(of: UInt16.self, from: 0x2A37)
            bench.backend.notify("measurement", [1])
            bench.backend.notify("measurement", [2, 0])
            var iterator = values.makeAsyncIterator()
            do {
                _ = try await iterator.next()
                Issue.record("a value of half its octets")
            } catch let error as BluetoothError {
                #expect(error.kind == .invalidValue)
            }
            #expect(try await iterator.next() == 2)
        }
    }

    @Test func `one stream has the values of all subscribed characteristics, over all links`() async throws {
        try await Bench.run { bench in
            bench.central.addConnectionTask { peripheral in
                try await peripheral.setNotifyValue(true, for: 0x2A37)
                try await peripheral.setNotifyValue(true, for: 0x2A19)
            }
            let updates = try bench.strap.valueUpdates()
            let strap = try await bench.connected()
            bench.backend.notify("measurement", [1])
            bench.backend.notify("level", [2])
            let changes = strap.connectionStateChanges()
            bench.backend.drop(FakeBackend.strap)
            await changes.wait(for: .disconnected(.remote))
            try await strap.connect()
            bench.backend.notify("measurement", [3])
            #expect(strap.isNotifying(0x2A37) && strap.isNotifying(CharacteristicID(0x2A19, in: 0x180F)))
            try await strap.setNotifyValue(false, for: 0x2A37)
            #expect(!strap.isNotifying(0x2A37))
            bench.backend.notify("measurement", [4])
            bench.backend.notify("level", [5])
            var seen: [String] = []
            for await value in updates.prefix(4) { seen.append("\(value.characteristic.uuid) \(value.octets)") }
            #expect(seen == ["2a37 [1]", "2a19 [2]", "2a37 [3]", "2a19 [5]"])
            #expect(bench.backend.asked.state.contains("unsubscribe measurement"))
        }
    }

    @Test(arguments: [BluetoothError.Kind.notSupported, .busy])
    func `a characteristic without a free socket uses signals`(_ refusal: BluetoothError.Kind) async throws {
        try await Bench.run({ $0.notificationPath = .socket }) { bench in
            let strap = try await bench.connected()
            bench.backend.fail("subscribe", BluetoothError(refusal, "no sockets here"))
            for id in [0x2A37, 0x2A19, 0x2A39] as [CharacteristicID] { try await strap.setNotifyValue(true, for: id) }
            let calls = bench.backend.asked.state.filter { $0.hasPrefix("subscribe") }
            let expected = ["measurement by socket", "measurement", "level by socket", "control"]
            #expect(calls == expected.map { "subscribe \($0)" })
        }
    }

    @Test func `stuck notifications are not subscribed by signals instead`() async throws {
        try await Bench.run({ $0.notificationPath = .socket }) { bench in
            let strap = try await bench.connected()
            bench.backend.fail("subscribe", BluetoothError(.notificationsStuck, "never answered"))
            let error = await #expect(throws: BluetoothError.self) { try await strap.setNotifyValue(true, for: 0x2A37) }
            #expect(error?.kind == .notificationsStuck)
            let calls = bench.backend.asked.state.filter { $0.hasPrefix("subscribe") }
            #expect(calls == ["subscribe measurement by socket"])
        }
    }

    // MARK: - Control points

    @Test func `a write to a control point returns its answer`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.answerWrites(to: "control", with: [0x80, 7], at: "control")
            let answer = try await strap.writeAndListen([7], to: Self.control, as: [UInt8].self)
            #expect(answer == [0x80, 7])
            await bench.backend.waitUntilAsked("unsubscribe control")
            let calls = bench.backend.asked.state.filter { $0.hasSuffix(" control") }
            #expect(calls == ["subscribe control", "write control", "unsubscribe control"])
        }
    }

    @Test func `the answer may come from another characteristic, and must match`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let others = try await strap.notifications(of: [UInt8].self, from: 0x2A37)
            bench.backend.hang("write")
            async let answer = strap.writeAndListen(
                UInt8(1),
                to: Self.control,
                listeningTo: 0x2A37,
                as: UInt16.self,
                where: { $0 > 10 }
            )
            await bench.backend.waitUntilAsked("write control")
            for octets in [[1], [2, 0], [11, 0]] as [[UInt8]] { bench.backend.notify("measurement", octets) }
            bench.backend.release("write")
            #expect(try await answer == 11)
            var seen: [[UInt8]] = []
            for try await octets in others.prefix(3) { seen.append(octets) }
            #expect(seen.count == 3)
            #expect(bench.backend.asked.state.filter { $0 == "subscribe measurement" }.count == 1)
        }
    }

    @Test func `a missing answer is a timeout that ends the subscription`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            // On a slow machine the first limits may pass before the write.
            var timeout = Duration.milliseconds(10)
            while !bench.backend.asked.state.contains("write control") {
                timeout *= 2
                let result = await outcome { [timeout] in
                    try await strap.writeAndListen([1], to: Self.control, as: [UInt8].self, timeout: timeout)
                }
                #expect(result.error?.kind == .timedOut)
                #expect(result.error?.operation == .writeAndListen)
            }
            await bench.backend.waitUntilAsked("unsubscribe control")
        }
    }
}
