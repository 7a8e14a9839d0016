import Testing

@testable import GattherdHTTPClient

@Suite struct SessionPoolTests {
    @Test func `requests that never got a thread leave their places free`() throws {
        let pool = SessionPool()
        for _ in 0..<3 * SessionPool.maximum { _ = try pool.dequeue() }
        let places = try (0..<SessionPool.maximum).map { _ in try pool.dequeue() }
        #expect(throws: HTTPClientError.self) { try pool.dequeue() }
        places.first?.finish()
        places.first?.finish()
        let place = try pool.dequeue()
        #expect(place.session === places.first?.session)
        #expect(throws: HTTPClientError.self) { try pool.dequeue() }
        withExtendedLifetime((places, place)) {}
    }
}
