import Testing

@testable import gattherd

@Suite struct ProfileListTests {
    @Test(
        arguments: [
            ([], ""), (["180d"], "180d"), (["180d", "180f", "180a"], "180d 180f 180a"),
            (["180d", "180f", "180a", "1818", "1816"], "180d 180f 180a and 2 more"),
            (
                ["f000aa00-0451-4000-b000-000000000000", "f000aa20-0451-4000-b000-000000000000"],
                "f000aa00-0451-4000-b000-000000000000 and 1 more"
            ),
            (
                ["manufacturer 2111, manufacturer 2112, manufacturer 2121"],
                "manufacturer 2111, manufacturer 2112, manuf…"
            ),
        ] as [([String], String)]
    )
    func `a cell of the list is narrow`(names: [String], cell: String) {
        #expect(ProfileCommands.few(names) == cell)
    }
}
