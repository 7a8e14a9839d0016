import GattherdMachines
import Testing

@Suite struct SlotBookTests {
    /// A book that was refused by turns for two devices.
    private func refused(_ times: Int, links: Int, now: Duration = .zero) -> SlotBook {
        var book = SlotBook()
        for number in 0..<times { book.refused("d\(number % 2)", links: links, now: now) }
        return book
    }

    @Test("Nothing is full before anything was refused")
    func unknown() {
        #expect(SlotBook().limit == nil)
        #expect(SlotBook().hasRoom(links: 1000, attempts: 100, now: .zero))
    }

    @Test("Six refusals of two devices with as many links make a limit, five do not", arguments: [5, 6])
    func evidence(refusals: Int) {
        #expect(refused(refusals, links: 3).limit == (refusals == 6 ? 3 : nil))
    }

    @Test("One device needs more refusals to make a limit: it may be the only one that waits", arguments: [7, 8])
    func oneDevice(refusals: Int) {
        var book = SlotBook()
        for _ in 0..<refusals { book.refused("d1", links: 3, now: .zero) }
        #expect(book.limit == (refusals == 8 ? 3 : nil))
    }

    @Test("A link in between, or another number of links, makes the evidence void")
    func interrupted() {
        var book = refused(5, links: 3)
        book.accepted(links: 4)
        book.refused("d1", links: 3, now: .zero)
        #expect(book.limit == nil)
        book = refused(5, links: 3)
        book.refused("d1", links: 4, now: .zero)
        #expect(book.limit == nil)
    }

    @Test("An adapter without links is never full")
    func empty() {
        #expect(refused(100, links: 0).limit == nil)
    }

    @Test("Below the limit there is room, and attempts under way take of it")
    func room() {
        let book = refused(6, links: 3)
        #expect(book.hasRoom(links: 1, attempts: 1, now: .zero))
        #expect(!book.hasRoom(links: 2, attempts: 1, now: .zero))
        #expect(!book.hasRoom(links: 3, attempts: 0, now: .zero))
        #expect(book.probe(links: 2) == nil)
    }

    @Test("A full adapter is asked again, one attempt at a time, ever more seldom")
    func probes() throws {
        var book = refused(6, links: 3)
        var now = Duration.zero
        var pauses: [Duration] = []
        for _ in 0..<9 {
            let probe = try #require(book.probe(links: 3))
            #expect(!book.hasRoom(links: 3, attempts: 0, now: probe - .milliseconds(1)))
            #expect(book.hasRoom(links: 3, attempts: 0, now: probe))
            #expect(!book.hasRoom(links: 3, attempts: 1, now: probe))
            pauses.append(probe - now)
            now = probe
            book.refused("d1", links: 3, now: now)
        }
        #expect(pauses == [5, 10, 20, 40, 80, 160, 320, 600, 600].map { .seconds($0) })
    }

    @Test("The first link above the limit ends the belief, one below does not")
    func raised() {
        var book = refused(6, links: 3)
        book.accepted(links: 3)
        #expect(book.limit == 3)
        book.accepted(links: 4)
        #expect(book.limit == nil)
    }

    @Test("Refusals with fewer links lower the limit")
    func lowered() {
        var book = refused(6, links: 3)
        for number in 0..<6 { book.refused("d\(number % 2)", links: 2, now: .zero) }
        #expect(book.limit == 2)
    }

    @Test func `three refusals with as many links are a suspicion, before they are a limit`() {
        #expect(refused(2, links: 3).suspectedLimit == nil)
        #expect(refused(3, links: 3).suspectedLimit == 3)
        #expect(refused(3, links: 3).limit == nil)
        #expect(refused(6, links: 3).suspectedLimit == nil)
    }
}
