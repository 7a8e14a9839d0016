import GattherdBluetooth
import GattherdGATT
import GattherdHistory
import GattherdModel
import Testing

@testable import GattherdGateway

@Suite struct EnrolmentCandidatesTests {
    private let start = SuspendingClock.now

    private func second(_ count: Int) -> SuspendingClock.Instant { start.advanced(by: .seconds(count)) }

    private func observation(
        _ number: Int,
        wasReady: Bool = false,
        wasTried: Bool = true,
        isElsewhere: Bool = false
    ) -> EnrolmentCandidates.Observation {
        EnrolmentCandidates.Observation(
            device: "d\(number)",
            wasReady: wasReady,
            wasTried: wasTried,
            isElsewhere: isElsewhere
        )
    }

    /// Offers devices one by one, and gives the numbers of those that were admitted.
    private func offer(_ candidates: inout EnrolmentCandidates, _ numbers: Range<Int>, at time: Int) -> [Int] {
        numbers.filter { number in
            candidates.admit("d\(number)", at: "a\(number)", by: "rule", now: second(time)) == .admitted
        }
    }

    @Test func `a device that is never ready is removed after ten minutes, and its address pauses for an hour`() {
        var candidates = EnrolmentCandidates([], now: start)
        #expect(offer(&candidates, 0..<1, at: 0) == [0])
        #expect(candidates.check([observation(0)], now: second(599)) == .init())
        #expect(candidates.check([observation(0)], now: second(600)) == .init(failed: ["d0"]))
        #expect(candidates.isIdle && candidates.pauseCount > 0)
        #expect(candidates.admit("d0", at: "a0", by: "rule", now: second(4199)) == .paused)
        #expect(candidates.admit("d0", at: "a0", by: "rule", now: second(4200)) == .admitted)
    }

    @Test func `a device that was ready stays, and so does one that was not tried yet`() {
        var candidates = EnrolmentCandidates([], now: start)
        _ = offer(&candidates, 0..<2, at: 0)
        #expect(
            candidates.check([observation(0, wasReady: true), observation(1)], now: second(30)) == .init(proven: ["d0"])
        )
        #expect(candidates.check([observation(0), observation(1, wasTried: false)], now: second(9000)) == .init())
        #expect(!candidates.contains("d0") && candidates.contains("d1"))
    }

    @Test func `the trial of a device that another gateway owns starts when that one has lost it`() {
        var candidates = EnrolmentCandidates([], now: start)
        _ = offer(&candidates, 0..<1, at: 0)
        let elsewhere = [observation(0, isElsewhere: true)]
        #expect(candidates.check(elsewhere, now: second(5000)) == .init())
        #expect(candidates.isIdle && candidates.contains("d0"))
        #expect(candidates.check([observation(0)], now: second(6000)) == .init())
        #expect(!candidates.isIdle)
        #expect(candidates.check([observation(0)], now: second(6599)) == .init())
        #expect(candidates.check([observation(0)], now: second(6600)) == .init(failed: ["d0"]))
    }

    @Test func `the trial of a device that gateways take in turns ends after ten minutes here`() {
        var candidates = EnrolmentCandidates([], now: start)
        _ = offer(&candidates, 0..<1, at: 0)
        var (minutesHere, wasElsewhere) = (0, false)
        for minute in 1...120 where candidates.contains("d0") {
            let isElsewhere = minute / 5 % 2 == 1
            if !isElsewhere, !wasElsewhere { minutesHere += 1 }
            wasElsewhere = isElsewhere
            _ = candidates.check([observation(0, isElsewhere: isElsewhere)], now: second(minute * 60))
        }
        #expect(minutesHere == 10 && !candidates.contains("d0"))
    }

    @Test func `devices that another gateway owns leave their places to others`() {
        var candidates = EnrolmentCandidates([], now: start)
        #expect(offer(&candidates, 0..<100, at: 0).count == EnrolmentCandidates.places)
        _ = candidates.check((0..<100).map { observation($0, isElsewhere: true) }, now: second(10))
        #expect(offer(&candidates, 100..<200, at: 10).count == EnrolmentCandidates.places)
    }

    @Test func `fake advertisers occupy few places, and only for minutes`() {
        var candidates = EnrolmentCandidates([], now: start)
        #expect(offer(&candidates, 0..<10_000, at: 0).count == EnrolmentCandidates.places)
        #expect(candidates.admit("x", at: "x", by: "other rule", now: start) == .admitted)
        let observations = (0..<10_000).map { observation($0) }
        #expect(candidates.check(observations, now: second(600)).failed.count == EnrolmentCandidates.places)
        #expect(candidates.admit("real", at: "r", by: "rule", now: second(600)) == .admitted)
    }

    @Test func `a rule enrols a hundred devices at once, then ten a minute`() {
        var candidates = EnrolmentCandidates([], now: start)
        var admitted = 0
        for number in 0..<1000 {
            admitted += offer(&candidates, number..<(number + 1), at: 0).count
            _ = candidates.check([observation(number, wasReady: true)], now: start)
        }
        #expect(admitted == 100)
        #expect(offer(&candidates, 2000..<3000, at: 60).count == 10)
    }

    @Test func `the memory for addresses is bounded`() {
        var candidates = EnrolmentCandidates([], now: start)
        for round in 0..<200 {
            let numbers = round * 50..<(round + 1) * 50
            let time = round * 601
            _ = offer(&candidates, numbers, at: time)
            _ = candidates.check(numbers.map { observation($0) }, now: second(time + 600))
            #expect(candidates.pauseCount <= EnrolmentCandidates.maximumPauses)
        }
    }

    @Test func `the trial of a candidate starts again after a restart`() {
        let record = EnrolledDevice(device: "d0", address: "a0", rule: "rule", isProven: false)
        var candidates = EnrolmentCandidates(
            [record, EnrolledDevice(device: "d1", address: "a1", rule: "rule")],
            now: start
        )
        #expect(candidates.contains("d0") && !candidates.contains("d1"))
        #expect(candidates.check([observation(0), observation(1)], now: second(600)) == .init(failed: ["d0"]))
    }

    @Test func `records that are read late join the devices whose trials run`() {
        var enrolled = EnrolledDevices(nil, now: start)
        #expect(enrolled.candidates.admit("d0", at: "a0", by: "rule", now: start) == .admitted)
        let records = (0...2).map { number in
            EnrolledDevice(
                device: "d\(number)",
                address: "a\(number)",
                rule: "rule",
                silence: .seconds(number),
                isProven: number == 2
            )
        }
        enrolled.recall(records, known: ["d0"], now: second(300))
        #expect(!enrolled.isRecallDue && enrolled.lastSeen["d2"] == .seconds(2))
        #expect(["d0", "d1", "d2"].filter { enrolled.isCandidate($0) } == ["d0", "d1"])
        let observations = (0...2).map { observation($0) }
        #expect(enrolled.check(observations, now: second(600)).outcome.failed == ["d0"])
        #expect(enrolled.check(observations, now: second(900)).outcome.failed == ["d1"])
    }

    @Test func `a trial that runs is no proof when the records are read late`() {
        var enrolled = EnrolledDevices(nil, now: start)
        #expect(enrolled.candidates.admit("d0", at: "a0", by: "rule", now: start) == .admitted)
        enrolled.recall([], known: ["d0"], now: second(10))
        #expect(enrolled.isCandidate("d0"))
    }

    @Test func `records that are read late end the trials of devices that were ready before`() {
        var enrolled = EnrolledDevices(nil, now: start)
        #expect(offer(&enrolled.candidates, 0..<2, at: 0) == [0, 1])
        let records = [
            EnrolledDevice(device: "d0", address: "a0", rule: "rule"),
            EnrolledDevice(device: "d1", address: "another address", rule: "rule"),
        ]
        enrolled.recall(records, known: ["d0", "d1"], now: second(300))
        #expect(!enrolled.isCandidate("d0") && enrolled.isCandidate("d1"))
        #expect(enrolled.check([observation(0), observation(1)], now: second(600)).outcome.failed == ["d1"])
    }

    @Test func `a device that failed keeps its traces if late records prove it`() {
        var enrolled = EnrolledDevices(nil, now: start)
        #expect(offer(&enrolled.candidates, 0..<1, at: 0) == [0])
        #expect(enrolled.check([observation(0)], now: second(600)).outcome.failed == ["d0"])
        enrolled.recall([EnrolledDevice(device: "d0", address: "a0", rule: "rule")], known: [], now: second(610))
        #expect(!enrolled.isCandidate("d0"))
        #expect(enrolled.check([observation(0)], now: second(620)).removed.isEmpty)
    }

    @Test func `a device that has failed its trial is a candidate until it has left`() {
        var enrolled = EnrolledDevices([], now: start)
        #expect(enrolled.candidates.admit("d1", at: "a1", by: "rule", now: start) == .admitted)
        #expect(enrolled.isCandidate("d1"))
        #expect(enrolled.check([observation(1)], now: second(600)).outcome.failed == ["d1"])
        #expect(enrolled.isCandidate("d1"))
        #expect(enrolled.check([], now: second(610)).removed == ["d1"])
        #expect(!enrolled.isCandidate("d1"))
    }

    @Test func `low addresses do not come before a high one every time`() {
        var due = PendingChanges.Batch()
        let adapter = BluetoothAddress(value: 1)
        for value in 1...1000 as ClosedRange<UInt64> {
            let address = BluetoothAddress(value: value)
            due.peripherals[address] = PeripheralStatus(id: PeripheralID(adapter: adapter, address: address))
        }
        let isEarly = (0..<1000).contains { _ in
            due.shuffledPeripherals.prefix(EnrolmentCandidates.places).contains { $0.id.address.value == 1000 }
        }
        #expect(isEarly)
    }
}
