import GattherdMachines
import Testing

@Suite struct CursorSavesTests {
    private var saves = CursorSaves(interval: .milliseconds(250), count: 100, pause: .seconds(1))

    @Test mutating func `a cursor that moved little is saved after the interval, and one that moved far at once`() {
        #expect(saves.start(1, at: .zero) == 1)
        saves.saved(1)
        #expect(saves.start(100, at: .milliseconds(249)) == nil)
        #expect(saves.time(of: 100) == .milliseconds(250))
        #expect(saves.start(101, at: .milliseconds(249)) == 101)
    }

    @Test mutating func `one save is pending at a time`() {
        #expect(saves.start(1, at: .zero) == 1)
        #expect(!saves.isIdle && saves.time(of: 1000) == nil)
        #expect(saves.start(1000, at: .seconds(9)) == nil)
        #expect(saves.startLast(1000) == nil)
        saves.saved(1)
        #expect(saves.isIdle)
        #expect(saves.start(1000, at: .seconds(9)) == 1000)
    }

    @Test mutating func `after a failure every cursor waits for the pause`() {
        #expect(saves.start(1000, at: .zero) == 1000)
        saves.failed(at: .zero)
        #expect(saves.hasFailed && !saves.isSaved(1000))
        #expect(saves.start(1000, at: .milliseconds(999)) == nil)
        #expect(saves.start(1000, at: .seconds(1)) == 1000)
        saves.saved(1000)
        #expect(!saves.hasFailed && saves.isSaved(1000))
    }

    @Test mutating func `the last cursor is saved at once, and once only`() {
        saves.loaded(5)
        #expect(saves.startLast(5) == nil)
        #expect(saves.startLast(nil) == nil)
        #expect(saves.start(6, at: .zero) == 6)
        saves.saved(6)
        #expect(saves.startLast(7) == 7)
        saves.saved(7)
        #expect(saves.startLast(7) == nil)
    }
}
