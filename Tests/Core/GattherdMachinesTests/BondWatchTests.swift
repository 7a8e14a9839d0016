import GattherdMachines
import Testing

@Suite struct BondWatchTests {
    /// One link of a peripheral, as BlueZ tells it.
    private enum Step {
        /// BlueZ says yes to an attempt, the link drops, and nobody knows its services.
        case earlyEnd
        /// The same, and BlueZ says no in the end.
        case failedAttempt
        /// The link drops without an attempt of ours: BlueZ tries again by itself.
        case unasked
        /// The link lasts for a while without its services being known, as one that is out of reach may.
        case slowEnd
        /// The services become known.
        case resolved
        /// The same, on a link that another program made.
        case adopted
    }

    /// Plays links of a bonded peripheral, a minute each; gives the changes that were told.
    private func play(_ steps: [Step], _ watch: inout BondWatch) -> [BondWatch.Change] {
        var changes = [watch.observe(isPaired: true, isConnected: false, isResolved: false, now: .zero)]
        for (minute, step) in steps.enumerated() {
            let start = Duration.seconds(60 * (minute + 1))
            let isOurs = step != .unasked && step != .adopted
            if isOurs { watch.attemptBegan() }
            let isResolved = step == .resolved || step == .adopted
            changes.append(watch.observe(isPaired: true, isConnected: true, isResolved: isResolved, now: start))
            changes.append(watch.ended(now: start + (step == .slowEnd ? .seconds(5) : .milliseconds(10))))
            if isOurs, step != .failedAttempt { changes.append(watch.attemptSucceeded()) }
        }
        return changes.compactMap { $0 }
    }

    @Test(
        arguments: [
            ([.earlyEnd, .earlyEnd, .earlyEnd], true), ([.earlyEnd, .unasked, .earlyEnd, .unasked], true),
            ([.earlyEnd, .earlyEnd], false), ([.slowEnd, .slowEnd, .slowEnd, .slowEnd], false),
            ([.failedAttempt, .failedAttempt, .failedAttempt, .failedAttempt], false),
            ([.earlyEnd, .failedAttempt, .earlyEnd, .failedAttempt, .earlyEnd], true),
            ([.earlyEnd, .earlyEnd, .resolved, .earlyEnd, .earlyEnd], false),
            ([.earlyEnd, .earlyEnd, .failedAttempt, .adopted, .earlyEnd, .earlyEnd], false),
        ] as [([Step], Bool)]
    )
    private func `a bond is lost when links drop before they can be used, and not by the radio`(
        steps: [Step],
        isLost: Bool
    ) {
        var watch = BondWatch()
        #expect(play(steps, &watch) == (isLost ? [.lost] : []))
        #expect(watch.hasLostBond == isLost)
    }

    @Test func `the order in which the end and BlueZ's answer are heard does not matter`() {
        var watch = BondWatch()
        _ = play([.earlyEnd, .earlyEnd], &watch)
        watch.attemptBegan()
        _ = watch.observe(isPaired: true, isConnected: true, isResolved: false, now: .seconds(900))
        #expect(watch.attemptSucceeded() == nil)
        #expect(watch.ended(now: .seconds(900)) == .lost)
    }

    @Test func `an end that is heard of after its attempt has failed does not count`() {
        var watch = BondWatch()
        _ = play([.earlyEnd, .earlyEnd], &watch)
        watch.attemptBegan()
        _ = watch.observe(isPaired: true, isConnected: true, isResolved: false, now: .seconds(900))
        #expect(watch.ended(now: .seconds(900)) == nil)
        watch.attemptBegan()
        #expect(watch.attemptSucceeded() == nil)
    }

    @Test func `where BlueZ says that it was the bond, it is lost at once`() {
        var watch = BondWatch()
        _ = play([.earlyEnd], &watch)
        watch.attemptBegan()
        #expect(watch.encryptionFailed() == .lost)
        #expect(watch.hasLostBond)
        #expect(play([.resolved], &watch) == [])
        #expect(!watch.hasLostBond)
        // A link that was in use had its keys.
        #expect(watch.encryptionFailed() == nil)
        var stranger = BondWatch()
        #expect(stranger.encryptionFailed() == nil)
    }

    @Test func `what was told is told again after one more sign`() {
        var watch = BondWatch()
        _ = play([.earlyEnd, .earlyEnd, .earlyEnd], &watch)
        watch.doubt()
        #expect(!watch.hasLostBond)
        // BlueZ's own attempts are echoes of the last one.
        #expect(play([.unasked, .unasked], &watch) == [])
        #expect(play([.earlyEnd], &watch) == [.lost])
    }

    @Test func `who is not bonded has no bond to lose`() {
        var watch = BondWatch()
        for second in 1...9 as ClosedRange<Int> {
            _ = watch.observe(isPaired: false, isConnected: true, isResolved: false, now: .seconds(second))
            #expect(watch.ended(now: .seconds(second)) == nil)
        }
    }

    @Test func `a bond that is made is told, one that was there is not`() {
        var watch = BondWatch()
        #expect(watch.observe(isPaired: true, isConnected: false, isResolved: false, now: .zero) == nil)
        #expect(watch.observe(isPaired: false, isConnected: false, isResolved: false, now: .zero) == nil)
        #expect(watch.observe(isPaired: true, isConnected: true, isResolved: true, now: .zero) == .made)
        #expect(watch.isPaired)
    }

    /// Lets a request fail and the link end, `gap` apart.
    private func failRequest(_ watch: inout BondWatch, at start: Duration, gap: Duration, endsFirst: Bool = false) {
        _ = watch.observe(isPaired: false, isConnected: true, isResolved: true, now: start)
        if endsFirst {
            _ = watch.ended(now: start)
            watch.requestFailed(now: start + gap)
        } else {
            watch.requestFailed(now: start)
            _ = watch.ended(now: start + gap)
        }
    }

    @Test(arguments: [true, false])
    func `who ends links in the middle of requests needs pairing`(endsFirst: Bool) {
        var watch = BondWatch()
        failRequest(&watch, at: .seconds(10), gap: .milliseconds(5), endsFirst: endsFirst)
        #expect(!watch.needsPairing)
        failRequest(&watch, at: .seconds(20), gap: .milliseconds(5), endsFirst: endsFirst)
        #expect(watch.needsPairing)
        _ = watch.observe(isPaired: true, isConnected: true, isResolved: true, now: .seconds(30))
        #expect(!watch.needsPairing)
    }

    @Test func `a failure that the link outlives is about something else`() {
        var watch = BondWatch()
        for minute in 1...5 { failRequest(&watch, at: .seconds(60 * minute), gap: .seconds(30)) }
        #expect(!watch.needsPairing)
    }

    @Test func `a session that was served clears the suspicion`() {
        var watch = BondWatch()
        failRequest(&watch, at: .seconds(10), gap: .zero)
        _ = watch.observe(isPaired: false, isConnected: true, isResolved: true, now: .seconds(20))
        watch.served()
        failRequest(&watch, at: .seconds(30), gap: .zero)
        #expect(!watch.needsPairing)
    }

    @Test func `a demand for encryption, and a bond that we removed, are enough`() {
        var demanding = BondWatch()
        demanding.requestNeedsPairing()
        var forgotten = BondWatch()
        _ = play([.earlyEnd, .earlyEnd, .earlyEnd], &forgotten)
        forgotten.forget()
        #expect(demanding.needsPairing && forgotten.needsPairing)
        #expect(!forgotten.hasLostBond)
    }
}
