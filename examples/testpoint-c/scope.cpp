// The scope guard in C++: it ends by exception too.
#include <punctual/testpoint.h>

#include <stdexcept>

static int half(int number) {
    PUNCTUAL_SCOPE("half");
    if (number % 2) throw std::invalid_argument("odd");
    return number / 2;
}

int main() {
    int sum = 0;
    for (int number = 0; number < 10; number++) {
        try {
            sum += half(number);
        } catch (const std::invalid_argument &) {
            PUNCTUAL_POINT1("refused", number);
        }
    }
    return sum == 10 ? 0 : 1;
}
