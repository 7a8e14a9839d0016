import GattherdMachines
import Testing

@Suite struct SlotBookTests {
    /// Returns a book with alternating refusals of two devices.
    private func refused(_ times: Int, links: Int, at now: Duration = .zero) -> SlotBook {
        var book = SlotBook()
        for number in 0..<times { book.refused("d\(number % 2)", links: links, at: now) }
        return book
    }

    @Test func `no adapter is full before a refusal`() {
        #expect(SlotBook().limit == nil)
        #expect(SlotBook().hasRoom(links: 1000, attempts: 100, at: .zero))
    }

    @Test(arguments: [5, 6])
    func `six refusals of two devices with equal links set a limit, five do not`(refusals: Int) {
        #expect(refused(refusals, links: 3).limit == (refusals == 6 ? 3 : nil))
    }

    @Test(arguments: [7, 8])
    func `a single device needs more refusals to set a limit`(refusals: Int) {
        var book = SlotBook()
        for _ in 0..<refusals { book.refused("d1", links: 3, at: .zero) }
        #expect(book.limit == (refusals == 8 ? 3 : nil))
    }

    @Test func `a new link or another number of links voids the evidence`() {
        var book = refused(5, links: 3)
        book.accepted(links: 4)
        book.refused("d1", links: 3, at: .zero)
        #expect(book.limit == nil)
        book = refused(5, links: 3)
        book.refused("d1", links: 4, at: .zero)
        #expect(book.limit == nil)
    }

    @Test func `an adapter without links is never full`() {
        #expect(refused(100, links: 0).limit == nil)
    }

    @Test func `there is room below the limit, and attempts under way count against it`() {
        let book = refused(6, links: 3)
        #expect(book.hasRoom(links: 1, attempts: 1, at: .zero))
        #expect(!book.hasRoom(links: 2, attempts: 1, at: .zero))
        #expect(!book.hasRoom(links: 3, attempts: 0, at: .zero))
        #expect(book.probe(links: 2) == nil)
    }

    @Test func `a full adapter is probed with one attempt at growing intervals`() throws {
        var book = refused(6, links: 3)
        var now = Duration.zero
        var pauses: [Duration] = []
        for _ in 0..<9 {
            let probe = try #require(book.probe(links: 3))
            #expect(!book.hasRoom(links: 3, attempts: 0, at: probe - .milliseconds(1)))
            #expect(book.hasRoom(links: 3, attempts: 0, at: probe))
            #expect(!book.hasRoom(links: 3, attempts: 1, at: probe))
            pauses.append(probe - now)
            now = probe
            book.refused("d1", links: 3, at: now)
        }
        #expect(pauses == [5, 10, 20, 40, 80, 160, 320, 600, 600].map { .seconds($0) })
    }

    @Test func `the first link above the limit removes it, one below does not`() {
        var book = refused(6, links: 3)
        book.accepted(links: 3)
        #expect(book.limit == 3)
        book.accepted(links: 4)
        #expect(book.limit == nil)
    }

    @Test func `refusals with fewer links lower the limit`() {
        var book = refused(6, links: 3)
        for number in 0..<6 { book.refused("d\(number % 2)", links: 2, at: .zero) }
        #expect(book.limit == 2)
    }

    @Test func `three refusals with equal links are a suspicion, not yet a limit`() {
        #expect(refused(2, links: 3).suspectedLimit == nil)
        #expect(refused(3, links: 3).suspectedLimit == 3)
        #expect(refused(3, links: 3).limit == nil)
        #expect(refused(6, links: 3).suspectedLimit == nil)
    }
}
