import GattherdModel
import Testing

@testable import GattherdHistory

@Suite struct UpkeepScheduleTests {
    @Test func `work is scheduled once until it starts`() {
        var schedule = UpkeepSchedule(reopeningDelay: .seconds(1))
        #expect(schedule.add(.cursor) == .milliseconds(250))
        #expect(schedule.add(.cursor) == nil)
        #expect(schedule.add(.reopening) == .seconds(1))
        #expect(schedule.contains(.cursor) && !schedule.contains(.step))
        _ = schedule.start(.cursor)
        #expect(!schedule.contains(.cursor) && schedule.contains(.reopening))
        #expect(schedule.add(.cursor) == .milliseconds(250))
    }

    @Test func `work learns whether something was committed while it waited`() {
        var schedule = UpkeepSchedule(reopeningDelay: .seconds(1))
        schedule.didCommit()
        _ = schedule.add(.flushing)
        _ = schedule.add(.cursor)
        let wasIdle = schedule.start(.flushing)
        #expect(wasIdle)
        schedule.didCommit()
        let wasIdleAfterCommit = schedule.start(.cursor)
        #expect(!wasIdleAfterCommit)
    }
}

@Suite struct HistoryMaintenanceTests {
    @Test func `a write-ahead log that grows is reported once, until it was short again`() {
        let recorder = LogRecorder()
        let reporter = HistoryReporter(recorder.log, AsyncStream.makeStream(of: HistoryNotice.self).continuation)
        var maintenance = HistoryMaintenance()
        for pages in [1000, 65_536, 80_000, 40_000, 70_000] { maintenance.setWALPages(pages, reporter) }
        #expect(recorder.messages.count == 1)
        for pages in [1000, 70_000] { maintenance.setWALPages(pages, reporter) }
        #expect(recorder.messages.count == 2)
    }
}

/// The decisions about a file that cannot be used, in virtual time.
@Suite struct FileFailuresTests {
    private let start = ContinuousClock.now
    private let full = StoreFault("no space", .full)
    private let damaged = StoreFault("malformed", .damaged)

    private func failures(consumers: [JournalConsumerOptions] = .one, whenFull: WhenFull = .deliver) -> FileFailures {
        var options = HistoryOptions(path: "", consumers: consumers, clock: GatewayClock(now: { Fixture.epoch }))
        options.whenFull = whenFull
        options.timeout = .seconds(5)
        options.pause = .seconds(1)
        return FileFailures(options)
    }

    private func after(_ seconds: Int) -> ContinuousClock.Instant { start.advanced(by: .seconds(seconds)) }

    @Test func `only the first fault is reported until the file can be used`() {
        var failures = failures()
        #expect(failures.fault == nil && failures.recover() == nil)
        var reports: [Bool] = []
        reports.append(failures.record(full, at: after(0)))
        reports.append(failures.record(damaged, at: after(1)))
        #expect(failures.fault == damaged)
        #expect(failures.recover() == FileFailures.Unstored())
        reports.append(failures.record(full, at: after(2)))
        #expect(reports == [true, false, true])
    }

    @Test(arguments: [(true, WhenFull.deliver, true), (true, .hold, false), (false, .deliver, false)])
    func `readings are delivered unstored after a while, if the options allow it and there is a consumer`(
        hasConsumer: Bool,
        whenFull: WhenFull,
        isExpected: Bool
    ) {
        var failures = failures(consumers: hasConsumer ? .one : [], whenFull: whenFull)
        _ = failures.record(full, at: after(0))
        #expect(!failures.mayDeliverUnstored(at: after(4)))
        #expect(failures.mayDeliverUnstored(at: after(5)) == isExpected)
    }

    @Test func `while readings are delivered unstored, the file is tried once per pause`() {
        var failures = failures()
        _ = failures.record(full, at: after(0))
        failures.postponeWriting(at: after(5))
        #expect(!failures.skipsFile(at: after(5)))
        var reports: [Bool] = []
        reports.append(failures.recordUnstored(readings: 3, rejects: 1))
        reports.append(failures.recordUnstored(readings: 4, rejects: 0))
        #expect(reports == [true, false])
        #expect(failures.skipsFile(at: after(5)))
        #expect(!failures.skipsFile(at: after(6)))
        #expect(failures.recover() == FileFailures.Unstored(readings: 7, rejects: 1))
        #expect(!failures.skipsFile(at: after(5)))
    }

    @Test func `a file is reopened after damage, an I/O error, or if it is not open`() {
        var failures = failures()
        _ = failures.record(full, at: after(0))
        #expect(!failures.isReopeningDue(isOpen: true) && failures.isReopeningDue(isOpen: false))
        _ = failures.record(StoreFault("I/O", .disk), at: after(0))
        #expect(failures.isReopeningDue(isOpen: true))
        _ = failures.record(damaged, at: after(0))
        #expect(failures.isReopeningDue(isOpen: true) && failures.isDamaged)
    }

    @Test func `damage found again replaces the file, once`() {
        var failures = failures()
        for _ in 0..<2 { _ = failures.record(damaged, at: after(0)) }
        #expect(!failures.isReplacementDue, "one fault was recorded twice")
        _ = failures.recover()
        _ = failures.record(damaged, at: after(10))
        #expect(failures.isReplacementDue)
        failures.didReplaceFile()
        #expect(!failures.isReplacementDue)
    }
}
