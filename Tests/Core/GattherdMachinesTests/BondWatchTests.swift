import GattherdMachines
import Testing

@Suite struct BondWatchTests {
    /// One link of a peripheral, as BlueZ reports it.
    private enum Step {
        /// BlueZ reports a successful attempt, and the link drops before its services are known.
        case earlyEnd
        /// The same, but BlueZ finally reports a failure.
        case failedAttempt
        /// The link drops without an attempt of the gateway: BlueZ retries by itself.
        case unasked
        /// The link lasts for a while without known services, as it may at the edge of the range.
        case slowEnd
        /// The services become known.
        case resolved
        /// The same, on a link that another program made.
        case adopted
    }

    /// Plays links of a bonded peripheral, one per minute, and returns the published changes.
    private func play(_ steps: [Step], _ watch: inout BondWatch) -> [BondWatch.Change] {
        var changes = [watch.observe(isPaired: true, isConnected: false, isResolved: false, at: .zero)]
        for (minute, step) in steps.enumerated() {
            let start = Duration.seconds(60 * (minute + 1))
            let isOurs = step != .unasked && step != .adopted
            if isOurs { watch.attemptBegan() }
            let isResolved = step == .resolved || step == .adopted
            changes.append(watch.observe(isPaired: true, isConnected: true, isResolved: isResolved, at: start))
            changes.append(watch.ended(at: start + (step == .slowEnd ? .seconds(5) : .milliseconds(10))))
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

    @Test func `the end of the link and BlueZ's answer may arrive in any order`() {
        var watch = BondWatch()
        _ = play([.earlyEnd, .earlyEnd], &watch)
        watch.attemptBegan()
        _ = watch.observe(isPaired: true, isConnected: true, isResolved: false, at: .seconds(900))
        #expect(watch.attemptSucceeded() == nil)
        #expect(watch.ended(at: .seconds(900)) == .lost)
    }

    @Test func `an end that arrives after its attempt has failed does not count`() {
        var watch = BondWatch()
        _ = play([.earlyEnd, .earlyEnd], &watch)
        watch.attemptBegan()
        _ = watch.observe(isPaired: true, isConnected: true, isResolved: false, at: .seconds(900))
        #expect(watch.ended(at: .seconds(900)) == nil)
        watch.attemptBegan()
        #expect(watch.attemptSucceeded() == nil)
    }

    @Test func `a bond is lost at once if BlueZ names it as the cause`() {
        var watch = BondWatch()
        _ = play([.earlyEnd], &watch)
        watch.attemptBegan()
        #expect(watch.encryptionFailed() == .lost)
        #expect(watch.hasLostBond)
        #expect(play([.resolved], &watch) == [])
        #expect(!watch.hasLostBond)
        // A link that was in use had been encrypted.
        #expect(watch.encryptionFailed() == nil)
        var stranger = BondWatch()
        #expect(stranger.encryptionFailed() == nil)
    }

    @Test func `a lost bond is reported again after one more early disconnect`() {
        var watch = BondWatch()
        _ = play([.earlyEnd, .earlyEnd, .earlyEnd], &watch)
        watch.rearm()
        #expect(!watch.hasLostBond)
        // BlueZ's own attempts are echoes of the last one.
        #expect(play([.unasked, .unasked], &watch) == [])
        #expect(play([.earlyEnd], &watch) == [.lost])
    }

    @Test func `an unbonded peripheral cannot lose its bond`() {
        var watch = BondWatch()
        for second in 1...9 as ClosedRange<Int> {
            _ = watch.observe(isPaired: false, isConnected: true, isResolved: false, at: .seconds(second))
            #expect(watch.ended(at: .seconds(second)) == nil)
        }
    }

    @Test func `a new bond is published, an existing one is not`() {
        var watch = BondWatch()
        #expect(watch.observe(isPaired: true, isConnected: false, isResolved: false, at: .zero) == nil)
        #expect(watch.observe(isPaired: false, isConnected: false, isResolved: false, at: .zero) == nil)
        #expect(watch.observe(isPaired: true, isConnected: true, isResolved: true, at: .zero) == .made)
        #expect(watch.isPaired)
    }

    /// Makes a request fail and the link end, `gap` apart.
    private func failRequest(_ watch: inout BondWatch, at start: Duration, gap: Duration, endsFirst: Bool = false) {
        _ = watch.observe(isPaired: false, isConnected: true, isResolved: true, at: start)
        if endsFirst {
            _ = watch.ended(at: start)
            watch.requestFailed(at: start + gap)
        } else {
            watch.requestFailed(at: start)
            _ = watch.ended(at: start + gap)
        }
    }

    @Test(arguments: [true, false])
    func `a peripheral that ends links during requests needs pairing`(endsFirst: Bool) {
        var watch = BondWatch()
        failRequest(&watch, at: .seconds(10), gap: .milliseconds(5), endsFirst: endsFirst)
        #expect(!watch.needsPairing)
        failRequest(&watch, at: .seconds(20), gap: .milliseconds(5), endsFirst: endsFirst)
        #expect(watch.needsPairing)
        _ = watch.observe(isPaired: true, isConnected: true, isResolved: true, at: .seconds(30))
        #expect(!watch.needsPairing)
    }

    @Test func `a failure that the link outlives has another cause`() {
        var watch = BondWatch()
        for minute in 1...5 { failRequest(&watch, at: .seconds(60 * minute), gap: .seconds(30)) }
        #expect(!watch.needsPairing)
    }

    @Test func `a served session clears the suspicion`() {
        var watch = BondWatch()
        failRequest(&watch, at: .seconds(10), gap: .zero)
        _ = watch.observe(isPaired: false, isConnected: true, isResolved: true, at: .seconds(20))
        watch.requestsAnswered()
        failRequest(&watch, at: .seconds(30), gap: .zero)
        #expect(!watch.needsPairing)
    }

    @Test func `a demand for encryption and a removed local bond are sufficient evidence`() {
        var demanding = BondWatch()
        demanding.requestNeedsPairing()
        var forgotten = BondWatch()
        _ = play([.earlyEnd, .earlyEnd, .earlyEnd], &forgotten)
        forgotten.bondRemoved()
        #expect(demanding.needsPairing && forgotten.needsPairing)
        #expect(!forgotten.hasLostBond)
    }
}
