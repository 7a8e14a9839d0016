import BlueZKit
import TestKit
import Testing

/// The values that `StartNotify` and `AcquireNotify` deliver.
@Suite(.timeLimit(.minutes(10)), .serialized) struct NotificationTests {
    @Test func `a read of any client is signalled like a notification, a write is not`() async throws {
        try await BlueZFixture.run(.thing) { fixture in
            let thing = fixture.device("thing")
            try await thing.findAndConnect()
            let value = try await thing.characteristic("fff1")
            try await value.call("StartNotify")
            let other = try await fixture.anotherClient()
            let same = value.through(other)
            try await same.write([7])
            #expect(try await same.read() == [7])
            #expect(try await same.read() == [7])
            try await fixture.order("notify", "thing", "fff1", "09")
            try await fixture.client.waitForEvents { $0.octets(of: value.path).contains([9]) }
            #expect(fixture.client.events.octets(of: value.path) == [[7], [7], [9]])
            await other.leave()
        }
    }

    @Test func `a notification is signalled once for each subscribed client, a read value once`() async throws {
        try await BlueZFixture.run(.thing) { fixture in
            let thing = fixture.device("thing")
            try await thing.findAndConnect()
            let value = try await thing.characteristic("fff1")
            let other = try await fixture.anotherClient()
            for client in [fixture.client, other] { try await value.through(client).call("StartNotify") }
            try await fixture.order("notify", "thing", "fff1", "09")
            try await fixture.client.waitForEvents { $0.octets(of: value.path).count >= 2 }
            let read = try await value.read()
            try await fixture.client.waitForEvents { $0.octets(of: value.path).count >= 3 }
            #expect(fixture.client.events.octets(of: value.path) == [[9], [9], read])
            await other.leave()
        }
    }

    @Test func `a notification socket does not carry the answers of reads`() async throws {
        try await BlueZFixture.run(.thing) { fixture in
            let thing = fixture.device("thing")
            try await thing.findAndConnect()
            let value = try await thing.characteristic("fff1")
            let socket = try await value.acquire()
            #expect(try await value.read() == [1])
            try await fixture.order("notify", "thing", "fff1", "09")
            var packets: [[UInt8]] = []
            try await eventually {
                packets += socket.read()
                return !packets.isEmpty
            }
            #expect(packets == [[9]])
            socket.close()
        }
    }

    @Test func `an empty notification is an empty read, and not the socket's end`() async throws {
        try await BlueZFixture.run(.thing) { fixture in
            let thing = fixture.device("thing")
            try await thing.findAndConnect()
            let value = try await thing.characteristic("fff4")
            let socket = try await value.acquire()
            try await fixture.order("burst", "thing", "3")
            var packets: [[UInt8]] = []
            try await eventually {
                packets += socket.read()
                return packets.count >= 3
            }
            #expect(packets == [[], [2], [3, 3]])
            #expect(!socket.isHungUp)
            socket.close()
        }
    }

    @Test func `equal notifications are all signalled`() async throws {
        try await BlueZFixture.run(
            .init(
                "custom",
                "same",
                """
                rate: 0, services: [{uuid: fff0, characteristics: \
                [{uuid: fff1, properties: [read, notify], notify: ['07']}]}]
                """
            )
        ) { fixture in
            let same = fixture.device("same")
            try await same.findAndConnect()
            let value = try await same.characteristic("fff1")
            try await value.call("StartNotify")
            try await fixture.order("burst", "same", "50")
            try await fixture.client.waitForEvents { $0.octets(of: value.path).count >= 50 }
            #expect(fixture.client.events.octets(of: value.path) == [[UInt8]](repeating: [7], count: 50))
        }
    }

    @Test func `a socket keeps the first 278 unread notifications and drops later ones`() async throws {
        try await BlueZFixture.run(.strap("strap", "rate: 0, battery: 50")) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let rate = try await strap.characteristic("2a37")
            let socket = try await rate.acquire()
            try await fixture.order("burst", "strap", "400")
            try await fixture.allArrived(at: strap, 400)
            let first = (0..<278).map { [0, UInt8(60 + $0 % 120)] }
            #expect(socket.read() == first)
            try await fixture.order("burst", "strap", "2")
            try await fixture.allArrived(at: strap, 402)
            #expect(socket.read() == [[0, UInt8(60 + 400 % 120)], [0, UInt8(60 + 401 % 120)]])
            socket.close()
        }
    }

    @Test func `a socket hangs up at the end of the link, and its packets can still be read`() async throws {
        try await BlueZFixture.run(.strap("strap", "rate: 0, battery: 50")) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            let socket = try await strap.characteristic("2a37").acquire()
            try await fixture.order("burst", "strap", "5")
            try await fixture.allArrived(at: strap, 5)
            #expect(!socket.isHungUp)
            try await fixture.order("drop", "strap")
            try await eventually { socket.isHungUp }
            try await strap.waitForEnd()
            let first = (0..<5).map { [0, UInt8(60 + $0)] }
            #expect(socket.read(limit: 8) == first + [[], [], []], "then empty reads without end")
            socket.close()
        }
    }
}

extension BlueZFixture {
    /// Waits until bluetoothd has received this number of notifications of a strap.
    ///
    /// A read after the last one is answered after it.
    func allArrived(at strap: BlueZObject, _ count: Int) async throws {
        try await eventually { try await self.count("notification", "strap", "2a37") >= count }
        _ = try await strap.characteristic("2a19").read()
    }
}
