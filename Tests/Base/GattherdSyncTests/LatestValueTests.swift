import GattherdSync
import Testing

@Suite(.timeLimit(.minutes(1))) struct LatestValueTests {
    @Test func `a watcher receives the current state, then each newer one`() async {
        let board = LatestValue(1)
        var seen: [Int] = []
        for await state in board.watch() {
            seen.append(state)
            guard state < 3 else { break }
            board.set(state + 1)
            board.set(state + 1)
        }
        #expect(seen == [1, 2, 3])
    }

    @Test func `a slow watcher receives the newest state`() async {
        let board = LatestValue(0)
        let states = board.watch()
        for state in 1...10 { board.set(state) }
        let first = await states.first { _ in true }
        #expect(first == 10)
    }

    @Test func `all watchers receive the same last state after concurrent changes`() async {
        for _ in 0..<500 {
            let board = LatestValue(0)
            let watchers = [board.watch(), board.watch()]
            await withTaskGroup(of: Void.self) { group in
                for state in 1...4 { group.addTask { board.set(state) } }
            }
            for watcher in watchers {
                let last = await watcher.first { _ in true }
                #expect(last == board.state)
            }
        }
    }

    @Test func `all watchers receive the last state and the end`() async {
        let board = LatestValue(1)
        let early = board.watch()
        board.set(2)
        board.finish()
        for states in [early, board.watch()] {
            var seen: [Int] = []
            for await state in states { seen.append(state) }
            #expect(seen == [2])
        }
    }

    @Test func `watchers can be cancelled and read the state while it changes`() async {
        for round in 0..<2000 {
            let board = LatestValue(0)
            let watchers = (0..<4).map { _ in Self.watcher(of: board) }
            async let sets = NamedThread.result(name: "sets") {
                for state in 1...100 { board.set(state) }
                return true
            }
            async let cancels = NamedThread.result(name: "cancels") {
                for _ in 0..<round % 50 { _ = board.state }
                for watcher in watchers { watcher.cancel() }
                return true
            }
            let (haveSet, haveCancelled) = await (sets, cancels)
            guard haveSet == true, haveCancelled == true else {
                Issue.record("who sets and who cancels wait for each other")
                return
            }
        }
    }

    private static func watcher(of board: LatestValue<Int>) -> Task<Void, Never> {
        Task {
            await withTaskCancellationHandler {
                for await _ in board.watch() {}
            } onCancel: {
                _ = board.state
            }
        }
    }
}
