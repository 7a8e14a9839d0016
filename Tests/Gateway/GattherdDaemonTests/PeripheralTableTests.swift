import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdSync
import Testing

@testable import GattherdDaemon

struct PeripheralTableTests {
    private let adapter = BluetoothAddress(value: 1)

    private func id(_ address: UInt64, on adapter: UInt64 = 1) -> PeripheralID {
        PeripheralID(adapter: BluetoothAddress(value: adapter), address: BluetoothAddress(value: address))
    }

    @Test func `links of other peripherals are counted once for each adapter`() {
        var table = PeripheralTable()
        #expect(table.setOtherLink(id(7), isConnected: true) == 1)
        #expect(table.setOtherLink(id(7), isConnected: true) == nil)
        #expect(table.setOtherLink(id(8), isConnected: true) == 2)
        #expect(table.setOtherLink(id(8, on: 2), isConnected: true) == 1)
        #expect(table.setOtherLink(id(7), isConnected: false) == 1)
        #expect(table.setOtherLink(id(9), isConnected: false) == nil)
    }

    @Test func `an adapter that is gone has no links of other peripherals`() {
        var table = PeripheralTable()
        #expect(table.setOtherLink(id(7), isConnected: true) == 1)
        table.remove(adapter: adapter)
        #expect(table.setOtherLink(id(8), isConnected: true) == 1)
    }

    @Test func `advertisements are reported once a second for each adapter`() {
        var table = PeripheralTable()
        #expect(table.isHearingDue(adapter, now: .zero) == true)
        #expect(table.isHearingDue(adapter, now: .milliseconds(999)) == false)
        #expect(table.isHearingDue(BluetoothAddress(value: 2), now: .milliseconds(999)) == true)
        #expect(table.isHearingDue(adapter, now: .seconds(1)) == true)
    }

    @Test func `an address is found on every adapter that knows it`() {
        var table = PeripheralTable()
        for id in [id(7, on: 2), id(7), id(8)] { #expect(table.update(PeripheralStatus(id: id)) == nil) }
        #expect(table.peripherals(at: BluetoothAddress(value: 7)).map(\.id) == [id(7), id(7, on: 2)])
        table.remove(id(7))
        #expect(table.peripherals(at: BluetoothAddress(value: 7)).map(\.id) == [id(7, on: 2)])
        table.removeAll()
        #expect(table.all.isEmpty)
    }
}

struct EnrolmentOffersTests {
    private let peripheral = PeripheralStatus(
        id: PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 7))
    )

    @Test func `a peripheral is offered until it is enrolled or declined`() {
        let answers = Locked<[Bool]>([false, true, true])
        let asked = LatestValue(0)
        var offers = EnrolmentOffers()
        offers.start { _ in
            asked.update { $0 += 1 }
            return answers.withLock { $0.removeFirst() }
        }
        for _ in 0..<3 { offers.offer(peripheral) }
        #expect(asked.state == 2, "the second offer was accepted")
        offers.remove(peripheral.id.address)
        offers.offer(peripheral)
        #expect(asked.state == 3, "BlueZ had removed the peripheral meanwhile")
    }

    @Test func `a new receiver is offered what an earlier one declined`() {
        let asked = LatestValue(0)
        var offers = EnrolmentOffers()
        for _ in 0..<2 {
            offers.start { _ in
                asked.update { $0 += 1 }
                return true
            }
            offers.offer(peripheral)
        }
        #expect(asked.state == 2)
        offers.start(nil)
        offers.offer(peripheral)
        #expect(asked.state == 2)
    }
}

/// The log lines about a bus that goes away.
@Suite(.timeLimit(.minutes(1))) struct LostDaemonLogTests {
    @Test func `a lost bluetoothd is logged once and its devices at debug level`() async throws {
        let entries = Locked<[LogEntry]>([])
        let log = Log(threshold: .debug) { entry in entries.withLock { $0.append(entry) } }
        let bench = try Bench([OctetProfile("pulse", service: 0x180D, characteristic: 0x2A37)], log: log)
        try await bench.run {
            bench.powerOn()
            await bench.announcer.wait(for: "strap", .ready)
            entries.withLock { $0 = [] }
            bench.central.tell.yield(.unavailable(detail: "the bus is gone"))
            await bench.announcer.wait(for: "strap", .disconnected)
        }
        let lost = entries.withLock(\.self).filter { entry in
            entry.fields.contains { $0.value.contains("the bus is gone") }
        }
        #expect(lost.filter { $0.level >= .info }.map(\.message) == ["bluetooth changed"])
        #expect(lost.contains { $0.level == .debug && $0.message == "link state changed" })
    }
}

@Suite(.timeLimit(.minutes(1))) struct SupervisorInboxTests {
    @Test func `events of BlueZ are read no faster than the loop handles them`() async {
        let (inbox, total, read) = (SupervisorInbox(), 200, Locked(0))
        let events = AsyncStream<CentralEvent>(unfolding: {
            let number = read.withLock { read in
                read += 1
                return read
            }
            return number <= total ? .available : nil
        })
        await withTaskGroup { group in
            group.addTask { await inbox.forward(events) }
            var (handled, checkpoints) = (0, 0)
            for await message in inbox.messages {
                if case .central = message { handled += 1 }
                if case .checkpoint = message {
                    #expect(read.withLock { $0 } == handled)
                    checkpoints += 1
                    inbox.countCheckpoint()
                }
                if handled == total { break }
            }
            #expect(checkpoints == 3)
        }
    }
}
