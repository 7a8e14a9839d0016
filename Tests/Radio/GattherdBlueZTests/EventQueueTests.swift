import GattherdBluetooth
import GattherdGATT
import Testing

@testable import GattherdBlueZ

@Suite(.timeLimit(.minutes(3))) struct EventQueueTests {
    private func id(_ octet: Int) throws -> PeripheralID {
        let adapter = try #require(BluetoothAddress("00:00:5E:00:53:01"))
        return PeripheralID(adapter: adapter, address: try #require(BluetoothAddress("C0:FF:EE:00:00:0\(octet)")))
    }

    private func seen(_ octet: Int, rssi: Int) throws -> CentralEvent {
        var status = PeripheralStatus(id: try id(octet))
        status.rssi = rssi
        return .peripheralChanged(status)
    }

    private func drained(_ queue: EventQueue) async -> [CentralEvent] {
        queue.finish()
        return await queue.stream.reduce(into: []) { $0.append($1) }
    }

    @Test func `events come in their order`() async throws {
        let queue = EventQueue()
        let events: [CentralEvent] = [
            .available, try seen(1, rssi: -1), .disconnected(try id(1)), try seen(2, rssi: -1),
        ]
        for event in events { queue.push(event) }
        #expect(await drained(queue) == events)
    }

    @Test func `a newer status replaces one that was not consumed`() async throws {
        let queue = EventQueue()
        for rssi in -90 ... -40 {
            queue.push(try seen(1, rssi: rssi))
            queue.push(try seen(2, rssi: rssi))
        }
        #expect(await drained(queue) == [try seen(1, rssi: -40), try seen(2, rssi: -40)])
    }

    @Test func `a status does not overtake other events of its peripheral`() async throws {
        let queue = EventQueue()
        let events: [CentralEvent] = [
            try seen(1, rssi: -1), .disconnected(try id(1)), try seen(1, rssi: -2), .peripheralRemoved(try id(1)),
            try seen(1, rssi: -3), .unavailable(detail: ""), try seen(1, rssi: -4),
        ]
        for event in events { queue.push(event) }
        #expect(await drained(queue) == events)
    }

    @Test func `a consumed status is not replaced`() async throws {
        let queue = EventQueue()
        var iterator = queue.stream.makeAsyncIterator()
        queue.push(try seen(1, rssi: -1))
        queue.push(try seen(2, rssi: -1))
        #expect(await iterator.next() == (try seen(1, rssi: -1)))
        queue.push(try seen(1, rssi: -2))
        queue.push(try seen(2, rssi: -2))
        #expect(await drained(queue) == [try seen(2, rssi: -2), try seen(1, rssi: -2)])
    }

    @Test func `a consumer that waits is woken`() async throws {
        let queue = EventQueue()
        let stream = queue.stream
        async let first = stream.first { _ in true }
        await Task.yield()
        queue.push(.available)
        #expect(await first == .available)
    }

    @Test func `a cancelled consumer does not wait`() async {
        let queue = EventQueue()
        await withTaskGroup(of: Int.self) { group in
            group.addTask { await queue.stream.reduce(0) { count, _ in count + 1 } }
            await Task.yield()
            group.cancelAll()
            #expect(await group.next() == 0)
        }
    }

    @Test func `statuses that are added before the consumer wakes come in order, the newest of each peripheral`()
        async throws
    {
        let queue = EventQueue()
        async let first = queue.stream.first { _ in true }
        queue.add(try seen(1, rssi: -1))
        queue.add(try seen(2, rssi: -1))
        queue.push(.available)
        let all = [await first].compactMap(\.self) + (await drained(queue))
        #expect(all == [try seen(1, rssi: -1), try seen(2, rssi: -1), .available])
    }

    @Test func `events that were added without a wake come before the end`() async throws {
        let queue = EventQueue()
        let all = Task { await queue.stream.reduce(into: []) { $0.append($1) } }
        queue.add(try seen(1, rssi: -1))
        queue.add(.available)
        queue.finish()
        #expect(await all.value == [try seen(1, rssi: -1), .available])
    }
}
