import BlueZKit
import GattherdBlueZ
import GattherdBluetooth
import GattherdModel
import TestKit
import Testing

/// Our client delivers every notification and nothing else, despite bluetoothd's quirks.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ValueTests {
    @Test func `the echo of a read is not delivered as a notification`() async throws {
        try await BlueZFixture.run(.thing) { fixture in
            try await OurClient.run(on: fixture.stack.bus) { ours in
                let id = try await ours.find([fixture.address("thing")])[0]
                let value = try await ours.connect(id, 0xFFF1)
                let basket = ValueCollector()
                try await ours.central.subscribe(to: value, by: .signals, token: SubscriptionToken(1), sink: basket)
                for _ in 1...20 { #expect(try await ours.central.read(value) == [1]) }
                try await fixture.order("notify", "thing", "fff1", "09")
                try await eventually { !basket[1].isEmpty }
                #expect(basket[1] == [[9]])
            }
        }
    }

    @Test func `every notification arrives during constant reads`() async throws {
        try await BlueZFixture.run(.strap("strap", "rate: 50, battery: 50")) { fixture in
            try await OurClient.run(on: fixture.stack.bus) { ours in
                let id = try await ours.find([fixture.address("strap")])[0]
                let rate = try await ours.connect(id)
                let basket = ValueCollector()
                try await ours.central.subscribe(to: rate, by: .signals, token: SubscriptionToken(1), sink: basket)
                // The characteristic cannot be read: bluetoothd sends the request and gets an empty value.
                while basket[1].count < 60 { _ = try await ours.central.read(rate) }
                let sent = try await fixture.silence("strap")
                try await eventually { basket[1].filter { !$0.isEmpty }.count >= sent.count }
                #expect(basket[1] == sent)
            }
        }
    }

    @Test(arguments: [NotificationPath.signals, .socket])
    func `by signals every notification arrives, by a socket every one after the first`(
        path: NotificationPath
    )
        async throws
    {
        // The energy makes each value unique, which identifies the last one.
        try await BlueZFixture.run(.strap("strap", "rate: 200, energy: true")) { fixture in
            try await OurClient.run(on: fixture.stack.bus) { ours in
                let id = try await ours.find([fixture.address("strap")])[0]
                let rate = try await ours.connect(id)
                let basket = ValueCollector()
                try await ours.central.subscribe(to: rate, by: path, token: SubscriptionToken(1), sink: basket)
                try await eventually { basket[1].count >= 20 }
                let sent = try await fixture.silence("strap")
                try await eventually { basket[1].last == sent.last }
                // bluetoothd drops values that arrive before it has created the socket.
                let missing = path == .signals ? 0 : sent.count - basket[1].count
                #expect(basket[1] == Array(sent.dropFirst(missing)))
            }
        }
    }

    @Test func `an empty notification is a notification, and does not end the subscription`() async throws {
        try await BlueZFixture.run(.thing) { fixture in
            try await OurClient.run(on: fixture.stack.bus) { ours in
                let id = try await ours.find([fixture.address("thing")])[0]
                let value = try await ours.connect(id, 0xFFF4)
                let basket = ValueCollector()
                try await ours.central.subscribe(to: value, by: .socket, token: SubscriptionToken(1), sink: basket)
                try await fixture.order("burst", "thing", "4")
                try await eventually { basket[1].count >= 4 }
                #expect(basket[1] == [[], [2], [3, 3], []])
            }
        }
    }

    @Test(arguments: [NotificationPath.signals, .socket])
    func `a link without a signal is found`(path: NotificationPath) async throws {
        try await BlueZFixture.run(.strap("strap", count: 10, "rate: 20, signals_connected: false")) { fixture in
            try await OurClient.run(on: fixture.stack.bus) { ours in
                let basket = ValueCollector()
                let ids = try await ours.find(fixture.names.map { fixture.address($0) })
                try await withThrowingTaskGroup { group in
                    for (number, id) in ids.enumerated() {
                        group.addTask {
                            let rate = try await ours.connect(id)
                            let token = SubscriptionToken(UInt64(number))
                            try await ours.central.subscribe(to: rate, by: path, token: token, sink: basket)
                        }
                    }
                    try await group.waitForAll()
                }
                try await eventually { ids.indices.allSatisfy { !basket[UInt64($0)].isEmpty } }
                try await fixture.order("drop", fixture.names[0])
                try await eventually { ours.events.contains(.disconnected(ids[0])) }
            }
        }
    }
}

extension BlueZFixture {
    /// Stops a strap's notifications and returns those that had a subscriber.
    func silence(_ name: String) async throws -> [[UInt8]] {
        try await order("rate", name, "0")
        return try await truth().delivered(of: address(name), "2a37")
    }
}
