import GattherdModel
import Testing

@Suite struct SparseArrayTests {
    @Test func `elements are found by their indices, whatever the order of setting them`() {
        var array = SparseArray<String>()
        for index in [480, 3, 0, 17, 4] { array.set("\(index)", at: index) }
        #expect(array.entries.map(\.index) == [0, 3, 4, 17, 480])
        #expect((0...500).compactMap { array[$0] } == ["0", "3", "4", "17", "480"])
        #expect(array[-1] == nil && array[16] == nil && array[481] == nil)
    }

    @Test func `a set element replaces the former one`() {
        var array = SparseArray<Int>()
        for element in 1...3 { array.set(element, at: 7) }
        #expect(array[7] == 3)
        #expect(array.entries.count == 1)
    }
}
