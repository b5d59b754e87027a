import { createApp, h } from 'vue'
import { createRouter, createWebHistory, RouterView } from 'vue-router'

const router = createRouter({
  history: createWebHistory(),
  // The page is a chunk of its own, with a style sheet of its own.
  routes: [{ path: '/:rest(.*)', component: () => import('./ContentPage.vue') }],
})
createApp({ render: () => h(RouterView) }).use(router).mount('#app')
