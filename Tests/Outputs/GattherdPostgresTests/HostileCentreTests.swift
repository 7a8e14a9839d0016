import GattherdMachines
import GattherdModel
import GattherdOutputs
import Testing

@testable import GattherdPostgres

/// Answers of a server that is no centre of gattherd, or not any more.
struct HostileCentreTests {
    private static let address = "00:00:5E:00:53:01"
    private static let long = String(repeating: "x", count: 1 << 20)

    /// Returns a lease of `west` with its bid, in the columns of the centre's answer.
    private static func row(_ changes: [Int: String] = [:]) -> [String?] {
        var row: [String?] = [
            address, "west", nil, "7", "30000", "f", "near", "west", "steady", "-60", nil, "0", "t", "west,east",
        ]
        for (column, text) in changes { row[column] = text }
        return row
    }

    @Test func `a lease in a usual answer is read completely`() throws {
        let lease = try #require(LeaseRow.all([Self.row([2: "east"])]).first)
        #expect(lease.owner == "west" && lease.previous == "east" && lease.gateways == ["west", "east"])
        #expect(lease.epoch == 7 && lease.isGranted && !lease.isReleased && lease.reason == "near")
        #expect(lease.bids.map(\.bid) == [LeaseBid(gateway: "west", standing: .steady, rssi: -60)])
    }

    @Test func `long reasons of a lease and a bid are cut`() throws {
        let lease = try #require(LeaseRow.all([Self.row([6: Self.long, 10: Self.long])]).first)
        #expect(lease.reason.utf8.count <= 1600)
        #expect(try #require(lease.bids.first?.bid.problem).utf8.count <= 800)
    }

    @Test(arguments: [1, 2])
    func `a lease whose owners cannot have their names is left out`(column: Int) {
        #expect(LeaseRow.all([Self.row([column: Self.long])]).isEmpty)
        #expect(LeaseRow.all([Self.row([column: "west\u{1B}[2J"])]).isEmpty)
    }

    @Test func `a lease with an endless list of gateways is left out, and impossible names in one are`() throws {
        #expect(LeaseRow.all([Self.row([13: Self.long])]).isEmpty)
        #expect(try #require(LeaseRow.all([Self.row([13: "west,\u{1B}[2J"])]).first).gateways == ["west"])
    }

    @Test func `a bid of a gateway that cannot have its name is left out`() throws {
        #expect(try #require(LeaseRow.all([Self.row([7: Self.long])]).first).bids.isEmpty)
    }

    @Test func `a message of combining characters is cut to its bytes, although it is a single character`() {
        let mark = "e" + String(repeating: "\u{301}", count: 1 << 20)
        #expect(mark.onOneLine.utf8.count <= 400)
        // For Swift the text is one character, so it has no prefix "e".
        #expect(mark.onOneLine.utf8.first == UInt8(ascii: "e"))
    }
}
