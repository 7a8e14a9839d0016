import GattherdModel
import Testing

@testable import GattherdMachines

/// Requests of a download, and devices that answer wrongly.
struct RecordDownloadTests {
    private func machine(
        _ procedure: DownloadDescriptor.Procedure = .accessControlPoint(width: 2),
        isNumbered: Bool = true
    ) -> DownloadMachine {
        DownloadMachine(procedure, isNumbered: isNumbered, timeout: .seconds(30), clock: { 0x6800_0000 })
    }

    private func facts(_ change: (inout DownloadFacts) -> Void = { _ in }) -> DownloadFacts {
        var facts = DownloadFacts()
        change(&facts)
        return facts
    }

    /// Facts of a request, by default of the first one.
    private func present(_ request: Int = 1, _ change: (inout DownloadFacts) -> Void = { _ in }) -> DownloadFacts {
        var facts = facts(change)
        facts.requests = request
        return facts
    }

    private func template(_ text: String) throws -> WriteTemplate { try #require(WriteTemplate(text)) }

    @Test func `counts of an earlier request do not affect the current one`() {
        var machine = machine()
        _ = machine.handle(.opened(facts { ($0.requests, $0.count) = (7, 5000) }), at: .zero)
        _ = machine.handle(.response([5, 0, 3, 0]), at: .zero)
        #expect(machine.handle(.progress(facts { ($0.requests, $0.count) = (7, 5000) }), at: .seconds(1)).isEmpty)
        let steps = machine.handle(.progress(facts { ($0.requests, $0.count) = (8, 5000) }), at: .seconds(2))
        #expect(steps == [.write([3, 0])])
    }

    @Test func `the first download counts all records and requests them`() {
        var machine = machine()
        #expect(machine.handle(.opened(facts()), at: .zero) == [.write([4, 1])])
        #expect(machine.handle(.response([5, 0, 0x10, 0x27]), at: .zero) == [.begin(.all), .write([1, 1])])
        #expect(machine.total == 10_000)
        #expect(machine.handle(.response([6, 0, 1, 1]), at: .zero) == [.drain])
        let end = machine.handle(.drained(present { $0.count = 10_000 }), at: .zero)
        #expect(end == [.complete, .drain])
    }

    @Test func `a later download requests the newest stored record again and what follows`() {
        var machine = machine()
        let known = facts { $0.resumption = 0x1234 }
        #expect(machine.handle(.opened(known), at: .zero) == [.write([4, 3, 1, 0x34, 0x12])])
        let steps = machine.handle(.response([6, 0, 4, 2]), at: .zero)
        #expect(steps == [.begin(.from(0x1234)), .write([1, 3, 1, 0x34, 0x12])])
    }

    @Test func `a device that no longer has the newest stored record is asked for all`() {
        var machine = machine()
        _ = machine.handle(.opened(facts { $0.resumption = 9 }), at: .zero)
        _ = machine.handle(.response([5, 0, 0, 0]), at: .zero)
        #expect(machine.handle(.response([6, 0, 1, 6]), at: .zero) == [.drain])
        let steps = machine.handle(.drained(present { $0.resumption = 9 }), at: .zero)
        #expect(steps == [.begin(.allAfterNone), .write([1, 1])])
        _ = machine.handle(.response([6, 0, 1, 6]), at: .zero)
        #expect(machine.handle(.drained(present(2)), at: .zero) == [.complete, .drain])
    }

    @Test func `a device that has overwritten all records from before a wrap is asked for all`() {
        var machine = machine()
        let known = facts { ($0.resumption, $0.highest, $0.isAtWrap) = (0xFFFF, 0xFFFF, true) }
        _ = machine.handle(.opened(known), at: .zero)
        _ = machine.handle(.response([5, 0, 0, 0]), at: .zero)
        #expect(machine.handle(.response([6, 0, 1, 6]), at: .zero) == [.drain])
        let none = present { ($0.resumption, $0.highest, $0.isAtWrap) = (0xFFFF, 0xFFFF, true) }
        #expect(machine.handle(.drained(none), at: .zero) == [.begin(.allAfterNone), .write([1, 1])])
    }

    @Test func `late answers to an aborted request lose no record`() {
        var machine = machine()
        _ = machine.handle(.opened(facts()), at: .zero)
        _ = machine.handle(.response([5, 0, 3, 0]), at: .zero)
        #expect(machine.handle(.progress(present()), at: .seconds(30)) == [.write([3, 0])])
        #expect(machine.handle(.progress(present()), at: .seconds(35)) == [.drain])
        #expect(machine.handle(.drained(present()), at: .seconds(35)) == [.end, .write([4, 1])])
        #expect(machine.handle(.response([6, 0, 3, 1]), at: .seconds(36)).isEmpty)
        #expect(machine.handle(.response([5, 0, 3, 0]), at: .seconds(36)) == [.begin(.all), .write([1, 1])])
        #expect(machine.handle(.response([6, 0, 3, 1]), at: .seconds(37)).isEmpty)
        #expect(machine.handle(.response([6, 0, 1, 1]), at: .seconds(37)) == [.drain])
        let lacking = present(2) { ($0.count, $0.stored) = (1, 1) }
        let again: [DownloadMachine.Step] = [.begin(.all, .repetition), .write([1, 1])]
        #expect(machine.handle(.drained(lacking), at: .seconds(37)) == again)
    }

    @Test func `a device that cannot filter is asked for all`() {
        var machine = machine()
        _ = machine.handle(.opened(facts { $0.resumption = 9 }), at: .zero)
        _ = machine.handle(.response([6, 0, 4, 4]), at: .zero)
        #expect(machine.handle(.response([6, 0, 1, 4]), at: .zero) == [.begin(.all), .write([1, 1])])
    }

    @Test func `a device that refuses a request because it still answers another is told to abort that`() {
        var machine = machine()
        _ = machine.handle(.opened(facts()), at: .zero)
        #expect(machine.handle(.failed("ATT error: 0xfe"), at: .zero) == [.write([3, 0])])
        #expect(machine.handle(.response([6, 0, 3, 1]), at: .zero) == [.drain])
        #expect(machine.handle(.drained(facts()), at: .zero) == [.write([4, 1])])
        _ = machine.handle(.response([5, 0, 3, 0]), at: .zero)
        #expect(machine.handle(.failed("ATT error: 0xfe"), at: .zero) == [.write([3, 0])])
        // A device that refuses the abort too is asked again at once.
        #expect(machine.handle(.failed("ATT error: 0xfe"), at: .zero) == [.end, .write([4, 1])])
    }

    @Test func `a device that never answers is asked three times`() {
        var machine = machine()
        var steps = machine.handle(.opened(facts()), at: .zero)
        var now = Duration.zero
        var requests = 0
        var begun = 0
        while !steps.contains(.finish(.failed("no answer within 30.0 seconds"))), now < .seconds(1000) {
            now += .seconds(1)
            requests += steps.count { $0 == .write([1, 1]) }
            begun += steps.count { $0 == .begin(.all) }
            let next = steps.contains(.drain) ? machine.handle(.drained(present(begun)), at: now) : []
            steps = next.isEmpty ? machine.handle(.progress(present(begun)), at: now) : next
        }
        #expect(requests == 3)
        #expect(now < .seconds(200))
    }

    @Test func `a download that makes progress has no time limit`() {
        var machine = machine()
        _ = machine.handle(.opened(facts()), at: .zero)
        _ = machine.handle(.response([5, 0, 0xFF, 0xFF]), at: .zero)
        for second in 1...20_000 {
            let steps = machine.handle(.progress(present { $0.count = second }), at: .seconds(29 * second))
            #expect(steps.isEmpty)
        }
    }

    @Test func `a device that sends more records than it counted is stopped`() {
        var machine = machine()
        _ = machine.handle(.opened(facts()), at: .zero)
        _ = machine.handle(.response([5, 0, 10, 0]), at: .zero)
        let progress = present { ($0.count, $0.stored) = (1021, 1021) }
        #expect(machine.handle(.progress(progress), at: .seconds(1)) == [.write([3, 0])])
        #expect(machine.handle(.response([6, 0, 3, 1]), at: .seconds(1)) == [.drain])
        // New records do not count as progress of such a device.
        let steps = machine.handle(.drained(present { ($0.count, $0.stored) = (1021, 1021) }), at: .seconds(1))
        #expect(steps == [.end, .finish(.failed("the device sends more records than it can have"))])
    }

    @Test func `a count limits no request but the counted one`() {
        var machine = machine()
        // The device was reset: it has no record from the newest stored one on, but many others.
        _ = machine.handle(.opened(facts { $0.resumption = 60_000 }), at: .zero)
        _ = machine.handle(.response([5, 0, 0, 0]), at: .zero)
        _ = machine.handle(.response([6, 0, 1, 6]), at: .zero)
        let steps = machine.handle(.drained(present { $0.resumption = 60_000 }), at: .zero)
        #expect(steps == [.begin(.allAfterNone), .write([1, 1])])
        #expect(machine.handle(.progress(present(2) { $0.count = 1500 }), at: .seconds(1)).isEmpty)
        #expect(machine.handle(.progress(present(2) { $0.count = 2_000_001 }), at: .seconds(2)) == [.write([3, 0])])
    }

    @Test(
        arguments: [[], [6], [5, 0], [5, 0, 1], [6, 0, 1], [6, 1, 1, 1], [7, 0, 1, 1], [6, 0, 9, 1]] as [[UInt8]]
    )
    func `answers of another kind are ignored`(answer: [UInt8]) {
        var machine = machine()
        _ = machine.handle(.opened(facts()), at: .zero)
        _ = machine.handle(.response([5, 0, 3, 0]), at: .zero)
        #expect(machine.handle(.response(answer), at: .zero).isEmpty)
    }

    @Test func `blocks are requested until the last record`() throws {
        var machine = machine(.blocks(try template("61 04 {index:u16le}"), first: 1, isRead: true), isNumbered: false)
        #expect(
            machine.handle(.opened(facts()), at: .zero) == [.begin(.all), .write([0x61, 4, 1, 0]), .read, .drain]
        )
        let first = present { ($0.payloads, $0.block) = (1, .init(count: 100, total: 150)) }
        #expect(machine.handle(.drained(first), at: .zero) == [.write([0x61, 4, 101, 0]), .read, .drain])
        let last = present { ($0.payloads, $0.block) = (2, .init(count: 50, total: 150)) }
        #expect(machine.handle(.drained(last), at: .zero) == [.complete, .drain])
    }

    @Test func `an empty block before the last record is read again, requested again, and at last a failure`() throws {
        var machine = machine(.blocks(try template("61 04 {index:u16le}"), first: 1, isRead: true), isNumbered: false)
        _ = machine.handle(.opened(facts()), at: .zero)
        let again: [DownloadMachine.Step] = [.end, .begin(.all), .write([0x61, 4, 1, 0]), .read, .drain]
        var now = Duration.zero
        for request in 1...3 {
            for read in 1...3 {
                let empty = present(request) { ($0.payloads, $0.block) = (read, .init(count: 0, total: 150)) }
                #expect(machine.handle(.drained(empty), at: now).isEmpty)
                #expect(machine.handle(.progress(empty), at: now).isEmpty)
                now += .seconds(1)
                #expect(machine.handle(.progress(empty), at: now) == [.read, .drain])
            }
            let last = present(request) { ($0.payloads, $0.block) = (4, .init(count: 0, total: 150)) }
            let steps = machine.handle(.drained(last), at: now)
            #expect(steps == (request < 3 ? again : [.end, .finish(.failed("the block at 1 is empty"))]))
        }
    }

    @Test func `a block of another kind, which does not decode, is read again after a pause`() throws {
        var machine = machine(.blocks(try template("61 04 {index:u16le}"), first: 1, isRead: true), isNumbered: false)
        _ = machine.handle(.opened(facts()), at: .zero)
        #expect(machine.handle(.drained(present()), at: .zero).isEmpty)
        #expect(machine.handle(.progress(present()), at: .seconds(1)) == [.read, .drain])
        let block = present { ($0.payloads, $0.block) = (1, .init(count: 150, total: 150)) }
        #expect(machine.handle(.drained(block), at: .seconds(1)) == [.complete, .drain])
    }

    @Test func `blocks of stored records are left out`() throws {
        var machine = machine(.blocks(try template("61 04 {index:u16le}"), first: 1, isRead: true), isNumbered: false)
        _ = machine.handle(.opened(facts { $0.resumption = 4000 }), at: .zero)
        let first = present { ($0.payloads, $0.block) = (1, .init(next: 4990, count: 100, total: 5000)) }
        #expect(machine.handle(.drained(first), at: .zero).first == .write([0x61, 4, 0x7E, 0x13]))
    }

    @Test func `notified blocks follow each other, and an empty one is the end`() throws {
        var machine = machine(.blocks(try template("01 {index:u24be}"), first: 0, isRead: false))
        let known = facts { $0.resumption = 7 }
        #expect(machine.handle(.opened(known), at: .zero) == [.begin(.from(7)), .write([1, 0, 0, 7])])
        let block = present { ($0.payloads, $0.block) = (1, .init(count: 5)) }
        #expect(machine.handle(.progress(block), at: .zero) == [.drain])
        #expect(machine.handle(.drained(block), at: .zero) == [.write([1, 0, 0, 12])])
        let empty = present { ($0.payloads, $0.block) = (2, .init(count: 0)) }
        _ = machine.handle(.progress(empty), at: .zero)
        #expect(machine.handle(.drained(empty), at: .zero) == [.complete, .drain])
    }

    @Test func `a device may claim any number of records`() throws {
        var machine = machine(.blocks(try template("01 {index:u24be}"), first: 0, isRead: false))
        _ = machine.handle(.opened(facts()), at: .zero)
        let block = present { ($0.payloads, $0.block) = (1, .init(count: 5, total: .max)) }
        #expect(machine.handle(.progress(block), at: .zero) == [.drain])
        #expect(machine.handle(.drained(block), at: .zero) == [.write([1, 0, 0, 5])])
        let next = present { ($0.payloads, $0.block) = (2, .init(count: 5, total: .max)) }
        #expect(machine.handle(.progress(next), at: .zero) == [.drain])
    }

    @Test func `an empty block may claim a negative number of records`() throws {
        var machine = machine(.blocks(try template("01 {index:u24be}"), first: 0, isRead: false))
        _ = machine.handle(.opened(facts { $0.resumption = 7 }), at: .zero)
        let block = present { ($0.payloads, $0.block) = (1, .init(count: 0, total: .min)) }
        #expect(machine.handle(.progress(block), at: .zero) == [.drain])
        #expect(machine.handle(.drained(block), at: .zero).first == .begin(.allAfterNone))
        #expect(machine.handle(.progress(present(2)), at: .seconds(1)).isEmpty)
    }

    @Test func `a download of endless blocks is given up`() throws {
        var machine = machine(.blocks(try template("{index:u56le}"), first: 0, isRead: true))
        var steps = machine.handle(.opened(facts()), at: .zero)
        var payloads = 0
        while steps.contains(.drain), payloads < 1_000_000 {
            payloads += 1
            steps = machine.handle(
                .drained(present { ($0.payloads, $0.block) = (payloads, .init(count: 1)) }),
                at: .zero
            )
        }
        #expect(steps == [.end, .finish(.failed("the device sends records without end"))])
        #expect(payloads == 200_000)
    }

    @Test func `a request names the newest time, and a pattern ends it`() throws {
        let end = try #require(BytePattern("3A ?? 10 FF"))
        var machine = machine(.request(try template("3A3A11 {now:u32be} {since:u32be}"), end: end))
        let known = facts { ($0.resumption, $0.newest) = (1, 0x67FF_0000) }
        #expect(
            machine.handle(.opened(known), at: .zero)
                == [.begin(.all), .write([0x3A, 0x3A, 0x11, 0x68, 0, 0, 0, 0x67, 0xFF, 0, 0])]
        )
        #expect(machine.handle(.response([0x3A, 0x30, 0x10, 0, 0]), at: .zero).isEmpty)
        #expect(machine.handle(.response([0x3A, 0x3A, 0x10, 0xFF, 0xFF]), at: .zero) == [.drain])
        #expect(machine.handle(.drained(present()), at: .zero) == [.complete, .drain])
    }

    @Test func `records that are made meanwhile do not prolong a request without an end`() throws {
        var machine = machine(.request(try template("AA"), end: nil))
        _ = machine.handle(.opened(facts()), at: .zero)
        #expect(machine.handle(.progress(present { $0.count = 5 }), at: .seconds(1)).isEmpty)
        let live = present { ($0.count, $0.live) = (9, 4) }
        #expect(machine.handle(.progress(live), at: .seconds(20)).isEmpty)
        #expect(machine.handle(.progress(live), at: .seconds(31)) == [.drain])
    }

    @Test func `records that are made during a request are counted apart`() {
        var tracker = RecordTracker(RecordBench().rule)
        let start = Timestamp(microseconds: 1_750_000_000_000_000)
        tracker.compare(device: start.microseconds, gateway: start)
        tracker.begin(.all, at: start)
        for (number, age) in [(1, 60_000_000), (2, 0)] as [(Int64, Int64)] {
            _ = tracker.receive(ReceivedRecord(number: number, reading: start.microseconds - age), at: start)
        }
        #expect((DownloadFacts(tracker).count, DownloadFacts(tracker).live) == (2, 1))
        tracker.begin(.from(1), at: start)
        #expect(DownloadFacts(tracker).live == 0)
    }

    @Test(arguments: [true, false])
    func `a device whose times vary is asked for records from before the newest stored one on`(isDense: Bool) {
        var rule = RecordBench().rule
        rule.isDense = isDense
        var tracker = RecordTracker(rule)
        let now = Timestamp(microseconds: 1_750_000_000_000_000)
        tracker.tell(now)
        tracker.begin(.all, at: now)
        _ = tracker.receive(ReceivedRecord(number: 7, reading: 1_749_999_000_000_000), at: now)
        tracker.complete()
        #expect(DownloadFacts(tracker).newest == (isDense ? 1_749_999_000 : 1_749_998_990))
    }

    @Test func `the newest stored record of a device whose times vary does not restart the numbers`() {
        var tracker = RecordTracker(RecordBench().rule)
        let now = Timestamp(microseconds: 1_750_000_000_000_000)
        for error in [0, 1_000_000, -1_000_000] as [Int64] {
            tracker.tell(now)
            tracker.begin(error == 0 ? .all : .from(7), at: now)
            let record = ReceivedRecord(number: 7, reading: 1_749_999_000_000_000 + error)
            #expect((tracker.receive(record, at: now) == .duplicate) == (error != 0))
            tracker.complete()
        }
        #expect(tracker.generation == 0)
        #expect(tracker.removeNotices().isEmpty)
    }

    @Test(
        arguments: [
            "", "{", "}", "{}", "{index}", "{index:u16le", "{index:i16le}", "{index:u64le}", "{other:u8}",
            "{index:u16xx}", "1", "01 {index:u12}", "01 }{index:u8}",
        ]
    )
    func `an invalid template is refused`(text: String) {
        #expect(WriteTemplate(text) == nil)
    }

    @Test func `a download ends while history stores nothing, and the device is told to stop`() {
        var machine = machine()
        _ = machine.handle(.opened(facts()), at: .zero)
        _ = machine.handle(.response([5, 0, 3, 0]), at: .zero)
        let unavailable = facts { $0.isLoaded = false }
        #expect(machine.handle(.progress(unavailable), at: .zero) == [.write([3, 0])])
        let end = machine.handle(.drained(unavailable), at: .zero)
        #expect(end == [.end, .finish(.failed("history cannot be used now"))])
    }

    @Test(arguments: [true, false])
    func `a download is complete only if history has stored its last records`(isStored: Bool) {
        var machine = machine()
        _ = machine.handle(.opened(facts()), at: .zero)
        _ = machine.handle(.response([5, 0, 3, 0]), at: .zero)
        _ = machine.handle(.response([6, 0, 1, 1]), at: .zero)
        #expect(machine.handle(.drained(present { $0.count = 3 }), at: .zero) == [.complete, .drain])
        #expect(machine.handle(.progress(present { $0.count = 3 }), at: .seconds(30)).isEmpty)
        let end = machine.handle(.drained(present { ($0.count, $0.isLoaded) = (3, isStored) }), at: .seconds(31))
        #expect(end == [.finish(isStored ? .complete : .failed("history cannot be used now"))])
    }

    @Test func `a download is not complete after a request that lost values`() {
        var machine = machine()
        _ = machine.handle(.opened(facts()), at: .zero)
        _ = machine.handle(.response([5, 0, 3, 0]), at: .zero)
        _ = machine.handle(.response([6, 0, 1, 1]), at: .zero)
        let lossy = present { ($0.count, $0.stored, $0.hasLosses) = (3, 3, true) }
        #expect(machine.handle(.drained(lossy), at: .zero) == [.end, .write([4, 1])])
        _ = machine.handle(.response([5, 0, 3, 0]), at: .zero)
        _ = machine.handle(.response([6, 0, 1, 1]), at: .zero)
        #expect(machine.handle(.drained(present(2) { $0.count = 3 }), at: .zero) == [.complete, .drain])
        let late = present(2) { ($0.count, $0.hasLosses) = (3, true) }
        #expect(machine.handle(.drained(late), at: .zero) == [.write([4, 1])])
    }

    @Test func `a download whose end is not confirmed has failed`() {
        var machine = machine()
        _ = machine.handle(.opened(facts()), at: .zero)
        _ = machine.handle(.response([5, 0, 0, 0]), at: .zero)
        _ = machine.handle(.response([6, 0, 1, 6]), at: .zero)
        #expect(machine.handle(.drained(present()), at: .zero) == [.complete, .drain])
        #expect(machine.handle(.progress(present()), at: .seconds(36)) == [.finish(.failed("decoding does not end"))])
    }

    @Test func `unreadable history ends the download`() {
        var machine = machine()
        let steps = machine.handle(.opened(facts { $0.isLoaded = false }), at: .zero)
        #expect(steps == [.finish(.failed("history cannot be used now"))])
    }
}
